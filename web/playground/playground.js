// The playground: the workbench with a service in a worker, and a panel for the program.

import { answerBy } from "./api.js";
import { byId, element, onClick, onSubmit, tell } from "./dom.js";
import { Editor } from "./editor.js";
import { began, engine } from "./early.js";
import { showDiagnostics, showError } from "./mistakes.js";
import { packed, unpacked } from "./sharing.js";
import { proposeStep } from "./steps.js";
import { onShow, show } from "./tabs.js";
import { begin } from "./workbench.js";

const FIRST = `// Which towns can be reached from which?
.decl line(from:symbol, to:symbol)
.decl reach(from:symbol, to:symbol)

line("Bern", "Zürich").
line("Zürich", "Chur").
line("Basel", "Bern").

reach(x, y) :- line(x, y).
reach(x, z) :- reach(x, y), line(y, z).
`;

let program = null;
let facts = null;
let stream = null; // of events, to the workbench
const unread = []; // events that came before the workbench has begun to read
let begun = false;
let running = false;
let name = "program.dl";
let again = false; // whether to run once more, when this run has ended

function onState(state, error) {
  if (state === "failed") tell("program-told", `Python did not start: ${error.message}`);
  else if (begun) tell("program-told", "stopped; nothing runs");
  else first();
  byId("run").disabled = state !== "ready";
}

/** The stream of changes: it lasts as long as the program. */
function changes(options) {
  const body = new ReadableStream({
    start(controller) {
      stream = controller;
      for (const bytes of unread.splice(0)) stream.enqueue(bytes);
    },
    cancel() {
      stream = null;
    },
  });
  options.signal?.addEventListener("abort", () => {
    stream = null;
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

answerBy((target, options) => (target.startsWith("/changes") ? Promise.resolve(changes(options)) : engine.ask(target, options)));

/** Run what the editors have; a program that runs already is run again after it. */
async function run() {
  again = running;
  if (running) return;
  running = true;
  byId("stop").disabled = false;
  tell("program-told", "running …");
  showDiagnostics("program-mistakes", program, []);
  showDiagnostics("facts-mistakes", facts, []);
  program.file = name;
  const from = performance.now();
  let holds = false;
  try {
    const response = await engine.start(program.value, facts.value, name);
    const answer = await response.json();
    holds = response.ok;
    if (holds) ran(answer, performance.now() - from);
    else refused(answer.error);
  } catch (error) {
    tell("program-told", error.message);
  }
  running = false;
  byId("stop").disabled = true;
  if (again) await run();
  else if (holds) await beginOnce();
}

function ran({ relations }, ms) {
  const count = relations.reduce((sum, each) => sum + each.size, 0);
  tell("program-told", `${count.toLocaleString("en")} fact${count === 1 ? "" : "s"} in ${(ms / 1000).toFixed(2)} s`);
  document.body.dataset.ran = String(Math.round(ms));
}

function refused(error) {
  tell("program-told", "");
  showError(...(error.code === "bad-fact" ? ["facts-mistakes", facts] : ["program-mistakes", program]), error);
}

async function beginOnce() {
  if (begun) return;
  begun = true;
  await begin();
}

/** Python is there: run what the address has, or the first program. */
async function first() {
  document.body.dataset.ready = String(Math.round(performance.now() - began));
  const wrong = await restored;
  await run();
  if (wrong) showError("program-mistakes", null, wrong);
  await beginOnce(); // of a program with errors the panels are empty
}

/** Take the program of a link; what is wrong with it, if something is. */
async function fromAddress(parameters) {
  try {
    const found = await unpacked(parameters.get("code"));
    if (typeof found.program !== "string") throw new Error("it has no program");
    program.value = found.program;
    facts.value = typeof found.facts === "string" ? found.facts : "";
    name = "program.dl";
    return null;
  } catch (error) {
    return { message: `this link cannot be read: ${error.message}`, code: "link" };
  }
}

async function restore() {
  const parameters = new URLSearchParams(location.hash.split("?")[1] ?? "");
  const wrong = parameters.has("code") ? await fromAddress(parameters) : null;
  if (!program.value) program.value = FIRST;
  return wrong;
}

async function share() {
  const code = await packed({ program: program.value, facts: facts.value });
  show("program", { code });
  try {
    await navigator.clipboard.writeText(location.href);
    tell("program-told", "The link is copied.");
  } catch {
    tell("program-told", "The address of this page is the link.");
  }
}

/** The first step of a stream of updates, without remarks. */
const firstStep = (updates) =>
  updates
    .split("\n")
    .filter((line) => !line.startsWith("//"))
    .join("\n")
    .trim()
    .split(/\n\s*\n/)[0];

let known = [];

async function loadExamples() {
  known = await (await fetch(new URL("./examples.json", import.meta.url))).json();
  byId("example").append(...known.map((each) => element("option", { value: each.name }, each.name.replaceAll("_", " "))));
  byId("example").addEventListener("change", () => {
    const chosen = known.find((each) => each.name === byId("example").value);
    if (!chosen) return;
    program.value = chosen.program;
    facts.value = chosen.facts;
    name = `${chosen.name}.dl`;
    proposeStep(firstStep(chosen.updates));
    run();
  });
}

program = new Editor(byId("program-text"), { labelled: "program-label", submit: () => byId("program-form").requestSubmit() });
facts = new Editor(byId("facts-text"), { labelled: "facts-label", hint: 'line("Chur", "Arosa").', submit: () => byId("program-form").requestSubmit() });
const restored = restore();
let last = null; // the code that the address names
onShow("program", async (parameters) => {
  const code = parameters.get("code") ?? "";
  const isNew = code !== "" && last !== null && code !== last;
  last = code;
  if (!isNew || (await packed({ program: program.value, facts: facts.value })) === code) return;
  const wrong = await fromAddress(parameters);
  if (wrong) showError("program-mistakes", null, wrong);
  else run();
});
onSubmit("program-form", run);
onClick("stop", () => engine.stop());
onClick("share", share);
loadExamples();
if ("serviceWorker" in navigator) navigator.serviceWorker.register(new URL("./offline.js", import.meta.url)).catch(() => {});
engine.listen({ onEvents: (bytes) => (stream ? stream.enqueue(bytes) : unread.push(bytes)), onState });
