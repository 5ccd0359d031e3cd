"""The page's style and its script; both are named by their hashes in the page's policy, so that nothing else runs."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """\
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#17202a;--soft:#566270;--line:#dde2e8;--accent:#1d5fbf;
--band:#e3edfb;--ok:#1a7f4b;--unknown:#6b7683;--lagging:#a86400;--rewound:#7a3fb5;--stalled:#c24a00;--stopped:#c01f2e;
--losing:#8f1239;--unstable:#8a6d00}
@media screen and (prefers-color-scheme:dark){:root{--page:#11151a;--card:#1a2027;--ink:#e8edf2;--soft:#9fabb8;
--line:#303944;--accent:#6ea8ff;--band:#1f3350;--ok:#4cc38a;--unknown:#9aa5b1;--lagging:#f0b04a;--rewound:#c397f5;--stalled:#ff9351;
--stopped:#ff7480;--losing:#ff8fb0;--unstable:#e0c84a}}
*{box-sizing:border-box}
body{margin:0;
background:var(--page);color:var(--ink);font:15px/1.45 system-ui,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1320px;margin:0 auto;padding:24px 20px 56px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px}
h2{font-size:19px;margin:40px 0 10px}
h3{font-size:15px;margin:0 0 8px;overflow-wrap:anywhere}
p{margin:0 0 12px}
.soft,.note,figcaption{color:var(--soft)}
.note{font-size:13px;max-width:86ch}
nav{margin:14px 0 0;display:flex;flex-wrap:wrap;gap:6px 16px;font-size:14px}
a{color:var(--accent)}
.verdict{display:flex;gap:14px;align-items:center;margin:18px 0 0;padding:14px 18px;background:var(--card);
border:1px solid var(--line);border-left:6px solid var(--ok);border-radius:8px;font-size:18px}
.verdict.bad{border-left-color:var(--stopped)}
.verdict.none{border-left-color:var(--unknown)}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px 18px}
.cards{display:grid;gap:14px}
.numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(146px,1fr));gap:14px 10px;margin:0}
.numbers dt{color:var(--soft);font-size:13px}
.numbers dd{margin:0;white-space:nowrap;font-size:22px;font-weight:600;line-height:1.25;
font-variant-numeric:tabular-nums}
.urgent{margin:14px 0 0;padding:0;list-style:none}
.urgent li{display:grid;grid-template-columns:104px minmax(0,1fr) auto;gap:2px 14px;padding:9px 18px;
border-top:1px solid var(--line)}
.urgent li:first-child{border-top:0}
.urgent .why{grid-column:2/4;min-width:0;color:var(--soft);font-size:14px}
.urgent .value{text-align:right;font-variant-numeric:tabular-nums}
.where{display:block;font-weight:400;font-size:12.5px}
.stack{display:block;width:100%;height:14px;margin:16px 0 8px;border-radius:4px}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:0;padding:0;list-style:none;font-size:14px}
.grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr))}
.two{display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr))}
.two+.two{margin-top:14px}
figure{margin:0}
figcaption{font-size:13px;margin-top:6px}
.plot{display:block;width:100%;height:110px;overflow:visible}
.plot.tall{height:150px}
.axis{display:flex;justify-content:space-between;font-size:12px;color:var(--soft);font-variant-numeric:tabular-nums}
.scale{font-size:12px;color:var(--soft);margin:0 0 2px}
.frame{stroke:var(--line);fill:none;vector-effect:non-scaling-stroke}
.dim{fill:var(--unknown);opacity:.16}
.area{fill:var(--band)}
.curve{stroke:var(--accent);stroke-width:2;fill:none;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.least{stroke-dasharray:4 4;opacity:.75}
.bar{fill:var(--accent)}
.bar:hover{opacity:.7}
.bars{width:100%;border-collapse:collapse}
.bars td,.bars th{border:0;padding:4px 0;vertical-align:middle}
.bars th{font-weight:400;text-align:left;width:42%;padding-right:12px;background:none}
.bars td.value{text-align:right;white-space:nowrap;padding-left:12px;width:1%}
.bars svg{display:block;width:100%;height:14px}
.fill-ok{fill:var(--ok)}.fill-unknown{fill:var(--unknown)}.fill-lagging{fill:var(--lagging)}
.fill-rewound{fill:var(--rewound)}.fill-stalled{fill:var(--stalled)}.fill-stopped{fill:var(--stopped)}
.fill-losing{fill:var(--losing)}.fill-unstable{fill:var(--unstable)}
.status{white-space:nowrap;font-weight:600}
.status svg{width:10px;height:10px;margin-right:6px}
.is-ok{color:var(--ok)}.is-unknown{color:var(--unknown)}.is-lagging{color:var(--lagging)}
.is-rewound{color:var(--rewound)}.is-stalled{color:var(--stalled)}.is-stopped{color:var(--stopped)}
.is-losing{color:var(--losing)}.is-unstable{color:var(--unstable)}
.wide{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:8px}
.wide table{border-collapse:collapse;width:100%;font-size:14px}
.wide th,.wide td{padding:7px 10px;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
.wide tr:last-child td{border-bottom:0}
.wide th{vertical-align:bottom;line-height:1.25;font-size:13px;color:var(--soft);background:var(--card)}
.wide th button{all:unset;cursor:pointer;color:inherit;font:inherit}
.wide th button:focus-visible{outline:2px solid var(--accent);outline-offset:3px}
th[aria-sort=ascending] button::after{content:" \\25B2"}
th[aria-sort=descending] button::after{content:" \\25BC"}
.wide td.n,.wide td.t{white-space:nowrap}
.wide .n{text-align:right;font-variant-numeric:tabular-nums}
.wide .t{font-variant-numeric:tabular-nums}
.name{overflow-wrap:anywhere}
.wide .name{min-width:18ch}
.why{min-width:25ch}
.filter{margin:0 0 10px;width:min(100%,340px);padding:7px 10px;font:inherit;color:inherit;background:var(--card);
border:1px solid var(--line);border-radius:6px}
footer{margin-top:40px;font-size:13px;color:var(--soft);overflow-wrap:anywhere}
@media (max-width:600px){.urgent li{grid-template-columns:minmax(0,1fr) auto}.urgent .name,.urgent .why{grid-column:1/3}
.urgent .value{grid-column:2;grid-row:1}}
@media print{:root{color-scheme:light}body{background:#fff}nav,.filter{display:none}
.card,.urgent,figure,tr{break-inside:avoid}}
"""

SCRIPT = """\
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.toLowerCase();
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.classList.contains("n") || head.classList.contains("t") ? "descending" : "ascending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...body.rows].map((row) => [key(row, column), row]);
      rows.sort(([one], [two]) => (one < two ? -sign : one > two ? sign : 0));
      body.append(...rows.map(([, row]) => row));
    });
  });
  if (table.dataset.filter) {
    const field = document.createElement("input");
    field.type = "search";
    field.className = "filter";
    field.placeholder = field.ariaLabel = table.dataset.filter;
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    table.parentElement.before(field);
  }
}
"""
