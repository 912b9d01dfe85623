// A worker that runs Python, so that the page stays alive, and an endless recursion can be stopped.

import { loadPyodide } from "./pyodide.mjs";

const here = new URL(".", import.meta.url).href;

async function started() {
  const modules = fetch(`${here}everlog.zip`);
  const boot = fetch(`${here}boot.py`);
  const python = await loadPyodide({ indexURL: here });
  python.unpackArchive(await (await modules).arrayBuffer(), "zip", { extractDir: "/modules" });
  python.runPython("import sys; sys.path.insert(0, '/modules')");
  const names = python.globals.get("dict")();
  python.runPython(await (await boot).text(), { globals: names });
  return { python, names };
}

const ready = started();
ready.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error) }),
);

/** Call a function of boot.py; the bytes of its answer, with status and kind. */
function call({ python, names }, name, ...parameters) {
  const given = parameters.map((each) => (each instanceof Object ? python.toPy(each) : each === null ? undefined : each));
  const answer = names.get(name)(...given);
  const [status, media, body] = answer.toJs();
  answer.destroy();
  return { status, media, body };
}

onmessage = async ({ data }) => {
  const base = await ready;
  try {
    const answer = data.start ? call(base, "start", data.start.text, data.start.facts, data.start.name) : call(base, "ask", data.method, data.target, data.headers, data.body === null ? null : new TextEncoder().encode(data.body));
    postMessage({ id: data.id, ...answer });
    const told = base.names.get("events")().toJs();
    if (told.length) postMessage({ events: told });
  } catch (error) {
    const body = new TextEncoder().encode(JSON.stringify({ error: { code: "internal", message: String(error) } }));
    postMessage({ id: data.id, status: 500, media: "application/json", body });
  }
};
