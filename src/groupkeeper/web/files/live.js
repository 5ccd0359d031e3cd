// Brings the parts of a page up to date when a cluster was polled. Without it a page is that of when it was loaded.
"use strict";
(() => {
  const source = document.body.dataset.events;
  const said = document.getElementById("live");
  let stream = null;
  let isFetching = false;
  let isStale = false;
  let retry = null;

  const say = (text) => {
    if (said.textContent !== text) said.textContent = text;
  };

  const focusable = "a,summary,[tabindex]";

  // What had the focus, what was opened, and how far tables were scrolled, by where they are in their part.
  const place = (part) => {
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const all = [...part.querySelectorAll(focusable)];
    const opened = [...part.querySelectorAll("details")].map((each) => each.open);
    const scrolled = [...part.querySelectorAll(".wide")].map((each) => [each.scrollLeft, each.scrollTop]);
    const same = (each) => focused.id ? each.id === focused.id : each.href === focused.href && each.textContent === focused.textContent;
    return () => {
      part.querySelectorAll(".wide").forEach((each, at) => {
        if (scrolled[at]) [each.scrollLeft, each.scrollTop] = scrolled[at];
      });
      part.querySelectorAll("details").forEach((each, at) => {
        each.open = opened[at] ?? each.open;
      });
      if (!focused) return;
      const now = [...part.querySelectorAll(focusable)];
      const found = now.find(same) || now[all.indexOf(focused)];
      if (found) found.focus({ preventScroll: true });
    };
  };

  const renew = async () => {
    if (isFetching) {
      isStale = true;
      return;
    }
    isFetching = true;
    isStale = false;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store" });
      if (answer.status === 401) {
        stream.close();
        say("Log in again: load the page.");
        return;
      }
      if (answer.status >= 500) throw new Error(answer.statusText); // of a proxy, while the server starts
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.ok) {
        say(fresh.querySelector("main")?.textContent.trim().slice(0, 200) || "The page no longer exists.");
        return;
      }
      const parts = [...document.querySelectorAll("[data-live]")];
      if (parts.length !== fresh.querySelectorAll("[data-live]").length) {
        location.reload(); // the cluster can be asked again, or no longer
        return;
      }
      for (const part of parts) {
        const other = fresh.getElementById(part.id);
        if (!other || other.innerHTML === part.innerHTML) continue;
        const restore = place(part);
        part.replaceChildren(...other.childNodes);
        restore();
      }
      say("live");
    } catch {
      say("The server does not answer.");
      clearTimeout(retry);
      retry = setTimeout(renew, 3000);
    } finally {
      isFetching = false;
    }
    if (isStale) renew();
  };

  const follow = () => {
    if (stream) stream.close();
    stream = new EventSource(source);
    stream.addEventListener("open", renew); // polls since the page was written, or while the stream was lost, are told by no event
    stream.addEventListener("poll", () => setTimeout(renew, Math.random() * 200));
    stream.addEventListener("error", () => {
      say(stream.readyState === EventSource.CLOSED ? "Not live: load the page again." : "The server does not answer.");
    });
  };

  // A browser has few connections for a server: hidden pages take none.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      if (stream) stream.close();
      stream = null;
    } else if (!stream) {
      follow();
    }
  });
  if (source && said && !document.hidden) follow();
})();
