// The page: a table comes in, its columns are shown, a question is asked, and a run is started.
import { corrections, setGrouping, setTarget, setWeights, showColumns } from "./columns.js";
import { alarm, ask, byId, make, many, wait } from "./dom.js";
import { addRun } from "./runs.js";

let table = null, about = null, newest = 0;

// ---- the table ------------------------------------------------------------------------------------------------------

async function take(name, send) {
  const mine = ++newest;
  alarm("");
  for (const part of ["columns-part", "run-part"]) byId(part).hidden = true;
  byId("look").textContent = "Reading " + name + " \u2026";
  try {
    let sent = await send();
    while (sent.look.state === "waiting" || sent.look.state === "running") {
      await wait(300);
      sent = await ask("tables/" + sent.id);
    }
    if (mine !== newest) return; // another one was dropped meanwhile
    if (sent.look.state !== "done") throw new Error(sent.look.error || "Reading it was " + sent.look.state + ".");
    byId("look").textContent = "";
    showTable(sent);
  } catch (error) {
    if (mine !== newest) return;
    byId("look").textContent = "";
    alarm(error.message);
  }
}

function takeFile(file) {
  if (!file || !about) return;
  if (file.size > about.most_bytes) {
    alarm("The file is larger than " + about.most_bytes / 1e6 + " MB. Start the app with a larger --max-size, or use knockoffs select.");
    return;
  }
  take(file.name, () => ask("tables?name=" + encodeURIComponent(file.name), { method: "POST", body: file }));
}

function showTable(sent) {
  table = sent;
  const { columns, n_rows: rows, name, warnings } = sent.table;
  byId("size").replaceChildren(make("bdi", { text: name }), ": " + many(rows, "row") + ", " + many(columns.length, "column") + ".");
  byId("said").replaceChildren(...warnings.map((words) => make("li", { text: words })));
  const select = byId("target");
  select.replaceChildren(make("option", { value: "", text: "Choose a column" }));
  columns.forEach((column, j) => select.append(make("option", { value: j, text: column.shown })));
  select.value = sent.target === null ? "" : String(sent.target);
  byId("weights").replaceChildren(make("option", { value: "", text: "none: all rows count alike" }));
  columns.forEach((column, j) => { if (column.kind === "continuous" || column.kind === "count") byId("weights").append(make("option", { value: j, text: column.shown })); });
  byId("groups").value = "";
  showColumns(sent.table, () => {});
  setTarget(sent.target);
  setWeights(null);
  setGrouping(false);
  for (const part of ["columns-part", "run-part"]) byId(part).hidden = false;
  byId("columns-heading").focus({ preventScroll: true });
  byId("columns-heading").scrollIntoView();
}

byId("file").addEventListener("change", (event) => { takeFile(event.target.files[0]); event.target.value = ""; });
const drop = byId("drop");
for (const kind of ["dragenter", "dragover"])
  document.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const kind of ["dragleave", "drop"])
  document.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.remove("over"); });
document.addEventListener("drop", (event) => takeFile(event.dataTransfer.files[0]));

// ---- the question ---------------------------------------------------------------------------------------------------

function optionField(option) {
  const id = "option-" + option.name, help = id + "-help";
  let field;
  if (option.choices.length) {
    field = make("select", { id, "aria-describedby": help });
    if (option.default === null) field.append(make("option", { value: "", text: "chosen for you" }));
    for (const choice of option.choices) field.append(make("option", { value: choice, text: choice.replaceAll("_", " ") }));
    field.value = option.default === null ? "" : option.default;
  } else if (option.type === "bool") {
    field = make("input", { type: "checkbox", id, "aria-describedby": help });
    field.checked = option.default;
  } else {
    field = make("input", { type: "number", id, min: option.least, step: "1", value: option.default, "aria-describedby": help });
  }
  const label = make("label", { for: id, text: option.label });
  const words = make("span", { id: help, class: "fine", text: option.help });
  return make("p", { class: option.type === "bool" ? "field check" : "field" }, label, field, words);
}

function optionValue(option) {
  const field = byId("option-" + option.name);
  if (option.type === "bool") return field.checked;
  if (option.choices.length) return field.value === "" ? null : field.value;
  return Number(field.value);
}

byId("target").addEventListener("change", (event) => setTarget(event.target.value === "" ? null : Number(event.target.value)));

byId("weights").addEventListener("change", (event) => setWeights(event.target.value === "" ? null : Number(event.target.value)));
byId("groups").addEventListener("change", (event) => setGrouping(event.target.value === "named"));

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  alarm("");
  const target = byId("target").value, fdr = Number(byId("fdr").value);
  if (target === "") {
    alarm("Choose the column that is to be explained.");
    byId("target").focus();
    return;
  }
  if (!(fdr > 0 && fdr < 1)) {
    alarm("The level is a number between 0 and 1, for instance 0.1.");
    byId("fdr").focus();
    return;
  }
  const weights = byId("weights").value;
  if (weights === target) {
    alarm("The weights are the column that is to be explained: choose another column, or none.");
    byId("weights").focus();
    return;
  }
  const asked = { table: table.id, target: Number(target), fdr, ...corrections() };
  if (weights !== "") asked.weights = Number(weights);
  if (byId("groups").value === "auto") asked.groups = "auto";
  const options = {};
  for (const option of about.options) options[option.name] = optionValue(option);
  byId("run").disabled = true;
  try {
    addRun(await ask("jobs", { method: "POST", json: { ...asked, options } }));
    byId("runs-heading").scrollIntoView();
  } catch (error) {
    alarm(error.message);
  } finally {
    byId("run").disabled = false;
  }
});

// ---- the start ------------------------------------------------------------------------------------------------------

try {
  about = await ask("about");
  byId("version").textContent = about.version;
  byId("limit").textContent = ", at most " + about.most_bytes / 1e6 + " MB";
  for (const example of about.examples) {
    const button = make("button", { type: "button", id: "example-" + example.key }, make("strong", { text: example.file }),
      make("span", { class: "fine", text: example.about }));
    button.addEventListener("click", () => take(example.file, () => ask("examples/" + example.key, { method: "POST" })));
    byId("examples").append(make("li", {}, button));
  }
  byId("option-fields").append(...about.options.map(optionField));
  for (const job of await ask("jobs")) addRun(job);
} catch (error) {
  alarm(error.message);
}
