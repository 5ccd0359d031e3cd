"""The page's style and its script; both are named by their hashes in the page's policy, so that nothing else runs."""

from __future__ import annotations

from groupkeeper.html.plot_script import PLOT_SCRIPT
from groupkeeper.rules.status import Status

_OF_STATUSES = "".join(f".fill-{each}{{fill:var(--{each})}}.is-{each}{{color:var(--{each})}}\n" for each in Status)
STYLE = (
    """\
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#17202a;--soft:#566270;--line:#dde2e8;--accent:#1d5fbf;
--band:#e3edfb;--ok:#1a7f4b;--unknown:#6b7683;--lagging:#a86400;--rewound:#7a3fb5;--stalled:#c24a00;--stopped:#c01f2e;
--losing:#8f1239;--unstable:#8a6d00;--abandoned:var(--unknown);--shade:rgb(23 32 42/.35)}
@media screen and (prefers-color-scheme:dark){:root{--page:#11151a;--card:#1a2027;--ink:#e8edf2;--soft:#9fabb8;
--line:#303944;--accent:#6ea8ff;--band:#1f3350;--ok:#4cc38a;--unknown:#9aa5b1;--lagging:#f0b04a;--rewound:#c397f5;--stalled:#ff9351;
--stopped:#ff7480;--losing:#ff8fb0;--unstable:#e0c84a;--shade:rgb(232 237 242/.4)}}
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
.banner{display:flex;gap:14px;align-items:center;margin:18px 0 0;padding:14px 18px;background:var(--card);
border:1px solid var(--line);border-left:6px solid var(--ok);border-radius:8px;font-size:18px}
.banner.bad{border-left-color:var(--stopped)}
.banner.none{border-left-color:var(--unknown)}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px 18px}
.cards{display:grid;gap:14px}
.numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(146px,1fr));gap:14px 10px;margin:0}
.numbers dt{color:var(--soft);font-size:13px}
.numbers dd{margin:0;overflow-wrap:anywhere;font-size:22px;font-weight:600;line-height:1.25;
font-variant-numeric:tabular-nums}
.act{columns:2 420px;column-gap:14px;margin:14px 0 0}
.finding{break-inside:avoid;margin:0 0 14px}
.finding h2{font-size:17px;margin:0}
.finding h2 b{font-size:22px;margin-right:4px;font-variant-numeric:tabular-nums}
.finding ol{margin:0;padding:0;list-style:none}
.finding li{padding:9px 0;border-top:1px solid var(--line)}
.finding li p{margin:0 0 4px;color:var(--soft);font-size:14px;overflow-wrap:anywhere}
.finding .note{margin:0 0 8px}
.what{display:flex;gap:2px 14px;justify-content:space-between;flex-wrap:wrap}
.what .name{font-weight:600;min-width:0}
.what .value{font-variant-numeric:tabular-nums}
.finding code{display:block;font-size:12.5px;background:var(--page);border-radius:4px;padding:3px 7px}
code{overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--accent)}
.group{margin:0 0 10px}
.group>summary{color:inherit}
.group>summary h3{display:inline;margin-right:10px}
.group>p{margin:10px 0}
.group .wide{max-height:420px;overflow:auto}
.group .two{margin:14px 0 0}
h4{font-size:14px;margin:14px 0 6px}
.fold>summary{margin:40px 0 10px;color:inherit;list-style-position:outside}
.fold>summary h2{display:inline;margin:0}
.where{display:block;font-weight:400;font-size:12.5px}
.stack{display:block;width:100%;height:14px;margin:16px 0 8px;border-radius:4px}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:0;padding:0;list-style:none;font-size:14px}
.grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr))}
.two{display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr))}
.two+.two{margin-top:14px}
figure{margin:0}
figcaption{font-size:13px;margin-top:6px}
.frame{position:relative;display:flex;gap:6px}
.frame:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.plot{display:block;flex:1 1 auto;width:100%;min-width:0;height:110px;overflow:hidden;
background:linear-gradient(var(--line),var(--line)) 0 50%/100% 1px no-repeat;
border:solid var(--line);border-width:1px 0}
.plot.tall{height:150px}
.y{display:flex;flex-direction:column;justify-content:space-between;flex:0 0 46px;text-align:right;font-size:12px;
line-height:1;color:var(--soft);font-variant-numeric:tabular-nums}
.mark{position:absolute;inset:0 0 0 52px;width:calc(100% - 52px);height:100%;pointer-events:none;overflow:visible}
.mark line{stroke:var(--ink);stroke-width:1;stroke-dasharray:3 3}
.axis{display:flex;justify-content:space-between;margin:2px 0 0 52px;font-size:12px;color:var(--soft);position:relative;
font-variant-numeric:tabular-nums}
.zone{position:absolute;right:100%;margin-right:6px}
.scale{display:flex;flex-wrap:wrap;gap:0 12px;justify-content:space-between;font-size:12px;color:var(--soft);
margin:0 0 4px;min-height:18px}
.readout{color:var(--ink);font-variant-numeric:tabular-nums}
.scale:has(.readout:not(:empty))>span:first-child{display:none}
.values{font-size:12.5px;margin:4px 0 0 52px}
.values>div{max-height:220px;overflow:auto}
.values table{border-collapse:collapse}
.values th,.values td{padding:1px 16px 1px 0;text-align:left;font-weight:400;font-variant-numeric:tabular-nums}
.ranges{display:flex;flex-wrap:wrap;gap:6px;align-items:center;font-size:14px;color:var(--soft)}
.ranges button{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:6px;
padding:3px 10px;cursor:pointer}
.ranges button[aria-pressed=true]{border-color:var(--accent);color:var(--accent)}
.dim{fill:var(--unknown);opacity:.16}
.area{fill:var(--band)}
.curve{stroke:var(--accent);stroke-width:2;fill:none;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.dot{stroke-width:5;stroke-linecap:round}
.least{stroke-dasharray:4 4;opacity:.75}
.bar{fill:var(--accent)}
.bars{width:100%;border-collapse:collapse}
.bars td,.bars th{border:0;padding:4px 0;vertical-align:middle}
.bars th{font-weight:400;text-align:left;width:42%;padding-right:12px;background:none}
.bars td.value{text-align:right;white-space:nowrap;padding-left:12px;width:1%}
.bars svg{display:block;width:100%;height:14px}
.status{white-space:nowrap;font-weight:600}
.status svg{width:10px;height:10px;margin-right:6px}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:8px;
background:linear-gradient(to right,var(--card) 12px,transparent) local left/36px 100% no-repeat,
linear-gradient(to left,var(--card) 12px,transparent) local right/36px 100% no-repeat,
linear-gradient(to right,var(--shade),transparent) left/16px 100% no-repeat,
linear-gradient(to left,var(--shade),transparent) right/16px 100% no-repeat,var(--card)}
.wide table{border-collapse:collapse;width:100%;font-size:14px}
.wide th,.wide td{padding:7px 10px;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
.wide tr:last-child td{border-bottom:0}
.wide th{vertical-align:bottom;line-height:1.25;font-size:13px;color:var(--soft)}
.wide th button{all:unset;cursor:pointer;color:inherit;font:inherit}
.wide th button:focus-visible{outline:2px solid var(--accent);outline-offset:3px}
th[aria-sort=ascending] button::after{content:" \\25B2"}
th[aria-sort=descending] button::after{content:" \\25BC"}
.wide td.n,.wide td.t{white-space:nowrap}
.wide .n{text-align:right;font-variant-numeric:tabular-nums}
.wide .t{font-variant-numeric:tabular-nums}
.name{overflow-wrap:anywhere}
.wide .name{min-width:18ch}
.why:where(:not(:empty)){min-width:25ch}
.why code{display:block;font-size:12.5px;margin:2px 0}
.rewinds{margin:2px 0 0;padding:0;list-style:none;color:var(--soft);font-size:13px;overflow-wrap:anywhere;
font-variant-numeric:tabular-nums}
.undone{margin:6px 0 0;padding-left:10px;border-left:3px solid var(--line)}
.filter{margin:0 0 10px;width:min(100%,340px);padding:7px 10px;font:inherit;color:inherit;background:var(--card);
border:1px solid var(--line);border-radius:6px}
footer{margin-top:40px;font-size:13px;color:var(--soft);overflow-wrap:anywhere}
@media (max-width:600px){.scale{min-height:36px;align-content:end}
main{padding:16px 12px 40px}.card{padding:12px 14px}.fold>summary{margin-top:26px}}
@media print{@page{margin:12mm}:root{color-scheme:light}body{background:#fff;font-size:12px}main{padding:0}
nav,.filter,.ranges,.values{display:none}details::details-content{content-visibility:visible;height:auto}
.card,.finding li,figure,tr{break-inside:avoid}.group,.finding{break-inside:auto}h2,h3,h4,summary{break-after:avoid}
.act{columns:1}.grid{grid-template-columns:1fr 1fr}.two{grid-template-columns:1fr 1fr}
.wide,.group .wide{overflow:visible;max-height:none}.wide table{font-size:9.5px}
.wide th,.wide td{padding:3px 4px}.wide th,.wide .rewinds,.why code{font-size:9.5px}.numbers dd{font-size:15px}
.wide .name,.why{min-width:0}.wide td.t{white-space:normal}}
"""
    + _OF_STATUSES
)

_TABLES = """\
(() => {
  // A pack is compressed HTML that this page's writer made; it is inserted when needed.
  const unpacked = async (pack) => {
    const bytes = Uint8Array.from(atob(pack.textContent), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const template = document.createElement("template");
    template.innerHTML = await new Response(stream).text();
    return template.content;
  };
  const all = async (table) => {
    const pack = table.parentElement.parentElement.querySelector("script[data-pack=rows]");
    if (!pack) return;
    const rows = await unpacked(pack);
    if (!pack.isConnected) return;
    pack.remove();
    table.tBodies[0].append(rows);
  };

  const key = (row, column) => {
    const cell = row.cells[column];
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.toLowerCase();
  };
  const sortable = (table) => {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", async () => {
        await all(table);
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
      field.addEventListener("input", async () => {
        await all(table);
        const wanted = field.value.toLowerCase();
        for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
      table.parentElement.before(field);
    }
  };

  // A group's section is opened by its link, and taken out of its pack before.
  const section = async (id) => {
    const there = document.getElementById(id);
    if (there) return there;
    const pack = [...document.querySelectorAll("script[data-ids]")].find((each) => each.dataset.ids.includes(id));
    const found = pack && (await unpacked(pack)).getElementById(id);
    if (!found) return null;
    document.getElementById(id) ?? document.getElementById("sections").append(found);
    return document.getElementById(id);
  };
  const reveal = async () => {
    const id = location.hash.slice(1), at = id && (await section(id));
    if (!at) return;
    for (const fold of [at.querySelector(":scope>details.fold"), at.closest("details.fold"), at])
      if (fold?.tagName === "DETAILS") fold.open = true;
    at.querySelectorAll("table.sortable:not([data-sortable])").forEach(prepare);
    at.scrollIntoView();
    at.querySelector("summary")?.focus({ preventScroll: true });
  };
  const prepare = (table) => {
    table.dataset.sortable = "";
    sortable(table);
  };
  document.querySelectorAll("table.sortable").forEach(prepare);
  if (matchMedia("(max-width:600px)").matches)
    document.querySelectorAll("details.fold").forEach((each) => { each.open = false; });
  // On paper nothing can be opened; plots have their values in the tables.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("main details:not([open]):not(.values)")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
    opened = [];
  });
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) reveal();
  });
  if (location.hash) reveal();
})();
"""

SCRIPT = PLOT_SCRIPT + _TABLES
