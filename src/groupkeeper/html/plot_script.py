"""The script of plots, for the report and the pages of `groupkeeper serve`: it shows values by pointer, by keyboard and
as a table, and shorter ranges of time. Without it, the plots stay as they were drawn.
"""

from __future__ import annotations

PLOT_SCRIPT = """\
"use strict";
(() => {
  const edge = 3, ranges = [["all", Infinity], ["7 d", 604800], ["24 h", 86400], ["6 h", 21600], ["1 h", 3600]];
  let range = Infinity;
  const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
  const short = (value) => {
    if (Math.abs(value) < 10000) return number.format(value);
    const [size, unit] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => Math.abs(value) >= size);
    return `${Number((value / size).toPrecision(3))} ${unit}`;
  };
  const moment = (s) => new Date(s * 1000).toISOString().slice(0, 19).replace("T", " ");
  const clock = (s, span) => {
    const text = new Date(s * 1000).toISOString();
    return span < 1200 ? text.slice(11, 19) : span < 90720 ? text.slice(11, 16) : text.slice(5, 16).replace("T", " ");
  };

  // A plot's times and values; null: unknown.
  const read = (chart) => {
    const begin = Number(chart.dataset.begin), end = Number(chart.dataset.end);
    const points = chart.dataset.values.split(" ").map((each) => {
      const [time, value] = each.split(":");
      return { time: begin + Number(time), value: value === "" ? null : Number(value) };
    });
    return { begin, end, points, unit: chart.dataset.unit, isBars: "bars" in chart.dataset };
  };
  const said = (plot, point) =>
    `${moment(point.time)} UTC: ${point.value === null ? "not known" : `${number.format(point.value)} ${plot.unit}`}`;
  const part = (plot) => {
    const from = Math.max(plot.begin, plot.end - range);
    return { from, points: plot.points.filter((each, at) => each.time >= from || plot.points[at + 1]?.time > from) };
  };

  // The chosen part of the time, from 0 up to its own highest value.
  const draw = (chart) => {
    const plot = read(chart), { from, points } = part(plot), svg = chart.querySelector("svg");
    const all = Math.max(1e-9, ...plot.points.map((each) => each.value ?? 0));
    const top = from > plot.begin ? Math.max(all / 1e6, ...points.map((each) => each.value ?? 0)) : all;
    const span = Math.max(1, plot.end - plot.begin), wide = ((plot.end - from) / span) * 1000;
    if (range !== Infinity || chart.dataset.drawn) {
      const high = (top / all) * 100, pad = (high * edge) / 100;
      svg.setAttribute("viewBox", `${1000 - wide} ${100 - high - pad} ${wide} ${high + 2 * pad}`);
      const marks = chart.querySelectorAll(".axis span:not(.zone)");
      marks.forEach((mark, at) => {
        mark.textContent = clock(from + ((plot.end - from) * at) / (marks.length - 1), plot.end - from);
      });
      const labels = chart.querySelectorAll(".y span");
      labels[0].textContent = short(top);
      labels[1].textContent = short(top / 2);
      chart.dataset.drawn = "1";
    }
    hide(chart);
    const values = chart.querySelector("details.values");
    if (values?.open) fill(chart, values);
  };

  const show = (chart, at) => {
    const plot = read(chart), { from, points } = part(plot), frame = chart.querySelector(".frame");
    at = Math.max(0, Math.min(points.length - 1, at));
    const point = points[at], width = plot.isBars ? (plot.points[1]?.time ?? plot.end) - plot.points[0].time : 0;
    const x = (Math.max(0, point.time + width / 2 - from) / Math.max(1, plot.end - from)) * 100;
    let mark = frame.querySelector("svg.mark");
    if (!mark) {
      mark = frame.querySelector("svg").cloneNode(false);
      for (const name of ["viewBox", "role", "aria-label"]) mark.removeAttribute(name);
      mark.setAttribute("class", "mark");
      mark.setAttribute("aria-hidden", "true");
      mark.innerHTML = "<line/>";
      frame.append(mark);
    }
    for (const name of ["x1", "x2"]) mark.firstChild.setAttribute(name, `${Math.min(100, x)}%`);
    mark.firstChild.setAttribute("y2", "100%");
    chart.querySelector(".readout").textContent = said(plot, point);
    frame.setAttribute("aria-valuenow", at);
    frame.setAttribute("aria-valuemax", points.length - 1);
    frame.setAttribute("aria-valuetext", said(plot, point));
  };
  const hide = (chart) => {
    chart.querySelector("svg.mark")?.remove();
    const readout = chart.querySelector(".readout");
    if (readout) readout.textContent = "";
  };
  const fill = (chart, values) => {
    const plot = read(chart), table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const text of ["time, UTC", plot.unit]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = text;
      head.append(cell);
    }
    const body = table.createTBody();
    for (const point of part(plot).points.toReversed()) {
      const row = body.insertRow();
      row.insertCell().textContent = moment(point.time);
      row.insertCell().textContent = point.value === null ? "not known" : number.format(point.value);
    }
    const box = document.createElement("div");
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.ariaLabel = "values of the plot";
    box.append(table);
    values.replaceChildren(values.firstChild, box);
  };

  const prepare = (chart) => {
    if (chart.querySelector(".readout")) return;
    const frame = chart.querySelector(".frame"), svg = chart.querySelector("svg");
    const readout = document.createElement("span");
    readout.className = "readout";
    chart.querySelector(".scale").append(readout);
    frame.tabIndex = 0;
    frame.setAttribute("role", "slider");
    frame.ariaLabel = svg.getAttribute("aria-label");
    frame.setAttribute("aria-valuemin", 0);
    frame.setAttribute("aria-valuemax", read(chart).points.length - 1);
    frame.setAttribute("aria-valuenow", 0);
    frame.setAttribute("aria-valuetext", "arrow keys go from value to value");
    svg.setAttribute("aria-hidden", "true");
    const values = document.createElement("details"), summary = document.createElement("summary");
    values.className = "values";
    summary.textContent = "values";
    values.append(summary);
    values.addEventListener("toggle", () => values.open && fill(chart, values));
    chart.append(values);
    draw(chart);
  };
  const prepareAll = (root) => root.querySelectorAll(".chart").forEach(prepare);

  const nearest = (chart, clientX) => {
    const box = chart.querySelector("svg.plot").getBoundingClientRect();
    const plot = read(chart), { from, points } = part(plot);
    const time = from + ((clientX - box.left) / box.width) * (plot.end - from);
    if (plot.isBars) return points.findLastIndex((each) => each.time <= time);
    const apart = (each) => Math.abs(each.time - time);
    return points.reduce((best, each, at) => (apart(each) < apart(points[best]) ? at : best), 0);
  };
  document.addEventListener("pointermove", (event) => {
    const chart = event.target.closest?.(".chart .frame")?.parentElement;
    if (chart?.querySelector(".readout")) show(chart, nearest(chart, event.clientX));
  });
  document.addEventListener("pointerout", (event) => {
    const frame = event.target.closest?.(".chart .frame");
    if (frame && !frame.contains(event.relatedTarget) && frame !== document.activeElement) hide(frame.parentElement);
  });
  document.addEventListener("focusin", (event) => {
    if (event.target.matches?.(".chart .frame")) show(event.target.parentElement, Infinity);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.matches?.(".chart .frame")) hide(event.target.parentElement);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.(".chart .frame")) return;
    const now = Number(event.target.getAttribute("aria-valuenow"));
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, ArrowDown: now - 1, ArrowUp: now + 1, PageDown: now - 10,
                 PageUp: now + 10, Home: 0, End: Infinity }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(event.target.parentElement, to);
  });

  // Ranges shorter than the plots.
  const choices = () => {
    const spans = [...document.querySelectorAll(".chart")].map((each) => each.dataset.end - each.dataset.begin);
    const place = document.querySelector("[data-ranges]");
    if (!place || !spans.length) return;
    const group = document.createElement("div");
    group.className = "ranges";
    group.setAttribute("role", "group");
    group.ariaLabel = "time that plots show";
    group.append("plots show");
    for (const [name, seconds] of ranges) {
      if (seconds !== Infinity && seconds >= Math.max(...spans) * 0.98) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = seconds === Infinity ? "all" : `the last ${name}`;
      button.setAttribute("aria-pressed", seconds === range);
      button.addEventListener("click", () => {
        range = seconds;
        group.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", each === button));
        document.querySelectorAll(".chart").forEach(draw);
      });
      group.append(button);
    }
    if (group.childElementCount > 1) place.append(group);
  };
  prepareAll(document);
  choices();
  new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) if (node.querySelectorAll) prepareAll(node);
  }).observe(document.body, { childList: true, subtree: true });
})();
"""
