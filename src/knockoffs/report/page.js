
"use strict";
// All words come from the data of the page and are set as text: nothing here makes html of them, and nothing is computed
// that the promise rests on.
(function () {
  const byId = (name) => document.getElementById(name);
  const data = JSON.parse(byId("data").textContent);
  const input = byId("level"), body = document.querySelector("#features tbody"), MOST = 200;
  let selected = data.selected, shown = data.shown, matches = null;

  const brief = (name) => (name.length > 40 ? name.slice(0, 38) + "\u2026" : name);

  function row(rank) {
    const tr = document.createElement("tr"), cells = data.rows[rank];
    tr.dataset.rank = rank;
    const head = document.createElement("th"), name = document.createElement("bdi");
    head.scope = "row";
    name.textContent = name.title = cells[0];
    head.append(name);
    const mark = document.createElement("td");
    mark.className = "mark";
    tr.append(head, mark);
    for (const words of cells.slice(1)) {
      const cell = document.createElement("td");
      cell.className = "number";
      cell.textContent = words;
      tr.append(cell);
    }
    return tr;
  }

  function marked() {
    for (const tr of body.rows) {
      const chosen = Number(tr.dataset.rank) < selected;
      tr.classList.toggle("chosen", chosen);
      tr.cells[1].textContent = chosen ? "yes" : "";
    }
    for (const bar of document.querySelectorAll("rect[data-rank]"))
      bar.classList.toggle("selected", Number(bar.dataset.rank) < selected);
  }

  function moveTo(at) {
    const stop = data.stops[at];
    input.value = at;
    input.setAttribute("aria-valuetext", "level " + stop.level + ", " + stop.n + " selected");
    byId("level-value").textContent = stop.level;
    byId("stop-count").textContent = stop.words;
    byId("stop-caution").textContent = stop.caution;
    byId("stop-promise").textContent = stop.promise;
    const names = data.rows.slice(0, Math.min(stop.n, 12)).map((cells) => "\u2068" + brief(cells[0]) + "\u2069");
    byId("stop-names").textContent = names.join(", ") + (stop.n > 12 ? " and " + (stop.n - 12) + " more" : "");
    byId("level-promise").classList.toggle("asked", stop.asked);
    byId("back").disabled = at === data.at;
    selected = stop.n;
    marked();
  }

  const original = Array.from(body.rows);
  function list() {
    const ranks = matches === null ? null : matches.slice(0, MOST);
    const rows = [];
    const n = ranks === null ? shown : ranks.length;
    for (let i = 0; i < n; i++) {
      const rank = ranks === null ? i : ranks[i];
      rows.push(original[rank] || row(rank));
    }
    body.replaceChildren(...rows);
    marked();
    const more = byId("more");
    if (more) more.hidden = matches !== null || shown >= data.rows.length;
  }

  function search() {
    const words = byId("search").value.trim().toLocaleLowerCase();
    matches = null;
    if (words) {
      matches = [];
      data.rows.forEach((cells, rank) => { if (cells[0].toLocaleLowerCase().includes(words)) matches.push(rank); });
    }
    byId("found").textContent = matches === null ? "" : matches.length + " found" +
      (matches.length > MOST ? ", the first " + MOST + " are shown" : "");
    list();
  }

  byId("slider").hidden = false;
  input.addEventListener("input", () => moveTo(Number(input.value)));
  byId("back").addEventListener("click", () => { moveTo(data.at); input.focus(); });
  byId("search").addEventListener("input", search);
  if (byId("more")) byId("more").addEventListener("click", () => {
    shown = Math.min(shown + MOST, data.rows.length);
    list();
  });
  moveTo(data.at);
})();
