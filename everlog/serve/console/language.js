// The language for the editor: colours, and what can be completed.

import { StreamLanguage } from "./codemirror.js";
import { knownRelations } from "./relations.js";
import { WORDS } from "./words.js";

const kindOf = new Map(Object.entries(WORDS).flatMap(([kind, words]) => words.map((word) => [word, kind])));

/** One token: CodeMirror reads a line from left to right. */
function token(stream, state) {
  if (state.comment) {
    if (stream.skipTo("*/")) {
      stream.match("*/");
      state.comment = false;
    } else stream.skipToEnd();
    return "comment";
  }
  if (stream.eatSpace()) return null;
  if (stream.match("//")) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match("/*")) {
    state.comment = true;
    return "comment";
  }
  if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
  if (stream.match(/^\$\w+/)) return "atom";
  if (stream.match(/^(?:0x[\da-fA-F]+|0b[01]+|\d+(?:\.\d+(?:e[+-]?\d+)?)?u?)/)) return "number";
  if (stream.match(/^\.[A-Za-z_]\w*/)) return kindOf.get(stream.current()) === "directive" ? "keyword" : "propertyName";
  if (stream.match(/^[?A-Za-z_][?\w]*/)) {
    const kind = kindOf.get(stream.current());
    if (kind === "type") return "typeName";
    if (kind !== undefined) return "keyword";
    return stream.match(/^\s*\(/, false) ? "variableName.function" : "variableName";
  }
  if (stream.match(/^(?::-|<=|>=|!=|!|=|<|>|\+|-)/)) return "operator";
  stream.next();
  return null;
}

export const language = StreamLanguage.define({
  name: "everlog",
  startState: () => ({ comment: false }),
  token,
  languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
});

/** Relations with their columns, words of the language, and names in the text. */
export function complete(context) {
  const word = context.matchBefore(/[.?A-Za-z_][?\w.]*/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const options = [];
  for (const relation of knownRelations()) {
    const columns = relation.columns.map((column) => column.name).join(", ");
    options.push({ label: relation.name, detail: `(${columns})`, type: "function", apply: `${relation.name}(${columns})`, boost: 2 });
  }
  for (const [kind, words] of Object.entries(WORDS)) for (const label of words) options.push({ label, type: kind === "type" ? "type" : "keyword", detail: kind });
  const known = new Set(options.map((option) => option.label));
  const names = new Set(context.state.doc.toString().match(/[A-Za-z_]\w+/g) ?? []);
  for (const label of names) if (!known.has(label) && label !== word.text) options.push({ label, type: "variable" });
  return { from: word.from, options, validFor: /^[.?\w]*$/ };
}
