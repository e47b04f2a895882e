// The columns of a table: which are used, and what they hold. Kept by number here, so that thousands need no rows.
import { byId, make, many } from "./dom.js";

const MOST = 100; // rows at first, and more at a time
let columns = [], choices = [], shown = MOST, target = null, weights = null, grouping = false, changed = () => {};

export function showColumns(table, whenChanged) {
  columns = table.columns;
  choices = columns.map((column) => ({ use: !column.problem, kind: column.kind, order: null, group: "" }));
  shown = MOST;
  changed = whenChanged;
  byId("search").value = "";
  list();
}

export function setTarget(j) {
  target = j;
  list();
}

export function setWeights(j) {
  weights = j;
  list();
}

export function setGrouping(asked) {
  grouping = asked;
  list();
}

// what differs from what was recognised, by the numbers of the columns
export function corrections() {
  const drop = [], kinds = {}, groups = {};
  choices.forEach((choice, j) => {
    if (j === target || j === weights) return;
    if (grouping && choice.use && choice.group) groups[j] = choice.group;
    if (!choice.use) drop.push(j);
    else if (choice.kind === "ordinal" && choice.order) kinds[j] = choice.order;
    else if (choice.kind !== columns[j].kind) kinds[j] = choice.kind;
  });
  return grouping ? { drop, kinds, groups } : { drop, kinds };
}

function list() {
  const words = byId("search").value.trim().toLocaleLowerCase();
  const matches = [];
  columns.forEach((column, j) => { if (!words || column.shown.toLocaleLowerCase().includes(words)) matches.push(j); });
  byId("columns").tBodies[0].replaceChildren(...matches.slice(0, shown).map(row));
  byId("found").textContent = words ? many(matches.length, "column") + " found" : "";
  byId("more").hidden = matches.length <= shown;
}

function row(j) {
  const column = columns[j], choice = choices[j], id = "column-" + j;
  const role = j === target ? "target" : j === weights ? "weights" : "";
  const name = make("bdi", { id, text: column.shown, title: column.shown });
  const tr = make("tr", {}, make("th", { scope: "row" }, name));
  if (role) tr.className = "target";
  else if (!choice.use) tr.className = "left-out";
  tr.append(make("td", {}, role || useBox(j, id)), make("td", {}, role ? "" : kindField(j, id)));
  tr.append(make("td", { class: "values" }, make("bdi", { text: column.values })));
  tr.append(make("td", { class: "missing", text: column.missing ? many(column.missing, "cell") : "" }));
  const why = make("td", { class: "why" });
  if (column.problem) why.append(make("span", { class: "problem", text: column.problem }));
  else why.textContent = column.why;
  tr.append(why);
  return tr;
}

function redraw(j, focus) {
  list();
  changed();
  const again = byId(focus);
  if (again) again.focus();
}

function useBox(j, id) {
  const box = make("input", { type: "checkbox", id: "use-" + j, "aria-label": "use", "aria-describedby": id });
  box.checked = choices[j].use;
  box.addEventListener("change", () => { choices[j].use = box.checked; redraw(j, box.id); });
  return box;
}

function kindField(j, id) {
  const select = make("select", { id: "kind-" + j, "aria-label": "kind", "aria-describedby": id });
  for (const kind of columns[j].may) select.append(make("option", { value: kind, text: kind }));
  select.value = choices[j].kind;
  select.disabled = !choices[j].use;
  select.addEventListener("change", () => {
    const choice = choices[j], labels = columns[j].labels;
    choice.kind = select.value;
    choice.order = choice.kind === "ordinal" && labels ? labels.map((_, k) => k) : null;
    redraw(j, select.id);
  });
  const fields = [select];
  if (choices[j].order) fields.push(orderField(j));
  if (grouping && choices[j].use) fields.push(groupField(j, id));
  return fields.length > 1 ? make("div", {}, ...fields) : select;
}

// the group that a column belongs to, by its name
function groupField(j, id) {
  const field = make("input", { id: "group-" + j, "aria-label": "group", "aria-describedby": id, placeholder: "group", maxlength: "100", autocomplete: "off" });
  field.value = choices[j].group;
  field.addEventListener("input", () => { choices[j].group = field.value.trim(); changed(); });
  return field;
}

// labels of a scale, from the lowest to the highest, moved by buttons
function orderField(j) {
  const { order } = choices[j], labels = columns[j].labels;
  const items = order.map((k, place) => {
    const up = make("button", { type: "button", class: "small", id: "up-" + j + "-" + place, text: "\u2191" });
    up.setAttribute("aria-label", "move up: label " + (place + 1) + " of " + order.length);
    up.disabled = place === 0;
    up.addEventListener("click", () => {
      order.splice(place - 1, 2, order[place], order[place - 1]);
      redraw(j, "up-" + j + "-" + Math.max(place - 1, 1));
    });
    return make("li", {}, up, " ", make("bdi", { text: labels[k] }));
  });
  const words = make("p", { class: "fine", id: "order-" + j, text: "From the lowest to the highest:" });
  return make("div", {}, words, make("ol", { class: "order", "aria-labelledby": words.id }, ...items));
}

byId("search").addEventListener("input", () => { shown = MOST; list(); });
byId("more").addEventListener("click", () => { shown += MOST; list(); });
