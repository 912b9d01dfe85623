// Examples of these pages run in the page itself, by the playground (make playground).
// Where the playground is not built, the pages are as they were.

const playground = new URL("../try/", import.meta.url);
const ROWS = 20; // shown of each relation

let engine = null; // one for all examples of a page, begun by the first that is run

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

async function started(say) {
  if (engine) return engine;
  say("Loading Python …");
  const { Engine } = await import(new URL("engine.js", playground));
  engine = new Engine();
  return engine;
}

/** A fact per line, as in a program. */
function written(relation, rows) {
  const value = (each, n) => (relation.columns[n].kind === "symbol" ? JSON.stringify(each) : each);
  return rows.map((row) => `${relation.name}(${row.map(value).join(", ")}).`).join("\n");
}

/** The facts of outputs or, if there are none, of all relations with rules. */
async function answers(relations) {
  const outputs = relations.filter((each) => each.output);
  const derived = relations.filter((each) => each.rules);
  const shown = outputs.length ? outputs : derived.length ? derived : relations;
  const parts = [];
  for (const relation of shown) {
    const target = `/relations/${encodeURIComponent(relation.name)}/facts?limit=${ROWS}&numbers=text`;
    const page = await (await engine.ask(target, {})).json();
    parts.push(written(relation, page.rows) || `// ${relation.name} has no facts`);
    if (page.total > page.rows.length) parts.push(`// … ${page.total - page.rows.length} more facts of ${relation.name}`);
  }
  return parts.join("\n");
}

function mistakes(error) {
  const found = error.diagnostics?.length ? error.diagnostics : [error];
  return found.map((each) => `${each.code}${each.line ? ` line ${each.line}, column ${each.column}` : ""}: ${each.message}${each.hint ? `\n  hint: ${each.hint}` : ""}`).join("\n");
}

function makeRunnable(block) {
  const code = block.querySelector("code");
  const text = code.textContent;
  const run = element("button", { type: "button" }, "Run");
  const told = element("span", { role: "status" });
  const open = element("a", { href: playground.href }, "Open in the playground");
  const out = element("pre", { hidden: "", tabindex: "0", "aria-label": "Its facts" });
  const say = (words) => {
    told.textContent = words;
  };
  let running = false;
  run.addEventListener("click", async () => {
    if (running) {
      engine?.stop();
      return;
    }
    running = true;
    run.textContent = "Stop";
    try {
      await (await started(say)).ready;
      say("running …");
      const from = performance.now();
      const response = await engine.start(text, "", "example.dl");
      const answer = await response.json();
      out.textContent = response.ok ? await answers(answer.relations) : mistakes(answer.error);
      say(`${((performance.now() - from) / 1000).toFixed(2)} s`);
      out.hidden = false;
    } catch (error) {
      say(error.message);
    } finally {
      running = false;
      run.textContent = "Run";
    }
  });
  open.addEventListener("pointerenter", () => address(open, text), { once: true });
  open.addEventListener("focus", () => address(open, text), { once: true });
  block.after(element("div", { class: "runnable" }, run, open, told, out));
}

async function address(link, program) {
  const { packed } = await import(new URL("sharing.js", playground));
  link.href = `${new URL("index.html", playground).href}#/program?code=${await packed({ program, facts: "" })}`;
}

/** Programs that are complete; others are parts of one. */
const isProgram = (block) => /^\s*\.decl\b/m.test(block.querySelector("code")?.textContent ?? "");

const there = await fetch(new URL("engine.js", playground), { method: "HEAD" }).catch(() => null);
if (there?.ok) [...document.querySelectorAll(".language-dl")].filter(isProgram).forEach(makeRunnable);
