// Runs: how far each is, a button that ends it, and what came of it.
import { alarm, ask, byId, clock, make, wait } from "./dom.js";

const WORDS = { done: "Done", failed: "Failed", cancelled: "Cancelled", killed: "Ended from outside" };
const STEPS = ["reading the table", "fitting P^X", "drawing knockoffs", "scoring features and knockoffs",
  "comparing knockoffs with features", "writing the report"];
const cards = new Map();
let polling = false;

export function addRun(job) {
  byId("runs-part").hidden = false;
  if (!cards.has(job.id)) cards.set(job.id, card(job));
  update(job);
  poll();
}

async function poll() {
  if (polling) return;
  polling = true;
  while ([...cards.values()].some((card) => !card.ended)) {
    await wait(500);
    try {
      for (const job of await ask("jobs")) if (cards.has(job.id)) update(job);
    } catch (error) {
      alarm(error.message);
      await wait(3000);
    }
  }
  polling = false;
}

function card(job) {
  const made = {
    status: make("p", { role: "status" }),
    bar: make("progress", { max: "100", "aria-label": "how far this run is" }),
    times: make("p", { class: "fine" }),
    cancel: make("button", { type: "button", text: "Cancel" }),
    rest: make("div"),
    said: "",
    number: -1,
    ended: false,
  };
  const title = make("h3", {}, make("bdi", { text: job.about.file }), ": ", make("bdi", { text: job.about.target }),
    ", level " + job.about.fdr);
  made.cancel.addEventListener("click", async () => {
    made.cancel.disabled = true;
    try {
      update(await ask("jobs/" + job.id + "/cancel", { method: "POST" }));
    } catch (error) {
      alarm(error.message);
    }
  });
  made.item = make("li", { class: "run" }, title, made.status, made.bar, made.times, made.cancel, made.rest);
  byId("runs").append(made.item);
  return made;
}

function update(job) {
  const made = cards.get(job.id);
  if (made.ended) return;
  made.item.className = "run " + job.state;
  if (job.state === "waiting" || job.state === "running") going(made, job);
  else ended(made, job);
}

// words that a screen reader is told change with the step alone; the clock beside them is not read aloud
function going(made, job) {
  if (STEPS.includes(job.step)) made.number = STEPS.indexOf(job.step); // other words are of loops inside a step
  if (job.step === "tests of features" || job.step === "draws of knockoffs") made.number = 3;
  const place = made.number < 0 ? "" : " (step " + (made.number + 1) + " of " + STEPS.length + ")";
  const words = job.state === "waiting" ? "Waiting for its turn" : "Running: " + job.step + place;
  if (words !== made.said) made.status.textContent = made.said = words;
  const inside = job.total ? job.done / job.total : 0;
  if (made.number < 0) made.bar.removeAttribute("value");
  else if (job.in_all !== null) made.bar.value = Math.max(made.bar.value || 0, (100 * job.seconds) / (job.seconds + job.in_all || 1));
  else made.bar.value = (100 * (made.number + inside)) / STEPS.length;
  const parts = [clock(job.seconds) + " so far"];
  if (job.total) parts.push(job.done + " of " + job.total);
  if (job.left !== null) parts.push("about " + clock(job.left) + " left in this step");
  if (job.in_all !== null) parts.push(job.in_all < 1 ? "nearly done" : "about " + clock(job.in_all) + " left in all");
  made.times.textContent = job.state === "waiting" ? "" : parts.join(", ");
}

function ended(made, job) {
  made.ended = true;
  made.bar.remove();
  made.cancel.remove();
  made.times.textContent = "after " + clock(job.seconds);
  if (job.state !== "done") {
    made.status.textContent = WORDS[job.state] + (job.error ? ": " + job.error : ".");
    made.rest.append(make("details", {}, make("summary", { text: "The same on the command line" }), lines(job.about.command)));
    return;
  }
  const found = job.result;
  made.status.textContent = found.selected + " of " + found.of + " features selected." +
    (found.verdict && found.verdict !== "good" ? " The knockoffs are " + found.verdict + ": see the verdict in the report." : "") + (job.error ? " But " + job.error : "");
  made.rest.append(make("p", { text: found.explanation }), files(job),
    make("details", {}, make("summary", { text: "The identical answer without this page" }),
      make("p", {}, "On the command line, in the folder of the table:"), lines(job.about.command),
      make("p", {}, "In Python:"), lines(job.about.python)));
  showReport(job);
}

function lines(text) {
  const copy = make("button", { type: "button", class: "small", text: "Copy" });
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Select it and press Ctrl-C";
    }
  });
  return make("div", {}, make("pre", { tabindex: "0", text }), copy);
}

function files(job) {
  const at = "jobs/" + job.id + "/";
  const link = (href, text, more = {}) => make("li", {}, make("a", { href, text, ...more }));
  const show = make("button", { type: "button", text: "Show the report below" });
  show.addEventListener("click", () => { showReport(job); byId("report-heading").focus(); });
  return make("ul", { class: "files" }, make("li", {}, show),
    link(at + "report.html", "Report in a tab of its own", { target: "_blank", rel: "noopener" }),
    link(at + "report.html?download", "report.html", { download: "report.html" }),
    link(at + "selection.json", "selection.json", { download: "selection.json" }),
    link(at + "selection.csv", "selection.csv", { download: "selection.csv" }),
    ...(job.about.groups ? [link(at + job.about.groups, job.about.groups, { download: job.about.groups })] : []),
    link("tables/" + job.about.table + "/file", "the table", { download: job.about.file }));
}

function showReport(job) {
  byId("report-part").hidden = false;
  byId("report-of").replaceChildren(make("bdi", { text: job.about.file }), ": ", make("bdi", { text: job.about.target }),
    ", level " + job.about.fdr);
  byId("report").src = "jobs/" + job.id + "/report.html";
}
