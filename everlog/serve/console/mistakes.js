// Errors as at the prompt: the code, the place, the line with marks under it, and a hint.

import { byId, element } from "./dom.js";

/** The line of an error, with `^` under the place. */
function excerpt(text, diagnostic) {
  const line = text.split("\n")[diagnostic.line - 1] ?? "";
  const letters = [...line];
  const end = diagnostic.end_line === diagnostic.line ? diagnostic.end_column : letters.length + 1;
  const under = " ".repeat(Math.max(0, diagnostic.column - 1)) + "^".repeat(Math.max(1, end - diagnostic.column));
  return `${line}\n${under}`;
}

function item(editor, diagnostic) {
  const text = editor?.value ?? "";
  const here = editor?.has(diagnostic) ?? false;
  const place = here ? ` line ${diagnostic.line}, column ${diagnostic.column}` : diagnostic.line ? ` ${diagnostic.file}, line ${diagnostic.line}` : "";
  const head = [element("span", { class: "code" }, diagnostic.code ?? "error"), `${place}: ${diagnostic.message}`];
  const parts = [here ? element("button", { type: "button", class: "link", onclick: () => editor.select(diagnostic) }, ...head) : element("span", {}, ...head)];
  if (here) parts.push(element("pre", {}, excerpt(text, diagnostic)));
  if (diagnostic.hint) parts.push(element("p", { class: "hint" }, `hint: ${diagnostic.hint}`));
  return element("div", { class: `mistake ${diagnostic.severity ?? "error"}` }, ...parts);
}

/** Show errors in a box, and mark them in the editor; none clears both. */
export function showDiagnostics(box, editor, diagnostics) {
  editor?.mark(diagnostics);
  byId(box).replaceChildren(...diagnostics.map((each) => item(editor, each)));
}

/** A message about a fact quotes it: that is where the error is, if the text has it. */
function placed(text, message) {
  for (const [, quoted] of message.matchAll(/`([^`]+)`/g)) {
    const at = text.indexOf(quoted);
    if (at < 0) continue;
    const before = text.slice(0, at).split("\n");
    const [line, column] = [before.length, [...before.at(-1)].length + 1];
    const lines = quoted.split("\n");
    return { line, column, end_line: line + lines.length - 1, end_column: [...lines.at(-1)].length + (lines.length > 1 ? 1 : column), severity: "error" };
  }
  return {};
}

/** The same for a request that was refused. */
export function showError(box, editor, error) {
  const where = editor ? placed(editor.value, error.message) : {};
  const found = error.diagnostics?.length ? error.diagnostics : [{ message: error.message, code: error.code ?? "error", ...where }];
  showDiagnostics(box, editor, found);
}
