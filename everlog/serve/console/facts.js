// Facts in the syntax of the language.

const quoted = (text) =>
  `"${text.replace(/[\\"\n\r\t]/g, (c) => ({ "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" })[c])}"`;

/** `relation` has columns with kinds; numbers are text already. */
export const factText = (relation, row) =>
  `${relation.name}(${row.map((value, n) => (relation.columns[n]?.kind === "symbol" ? quoted(value) : value)).join(", ")})`;

/** Without knowing the columns: what does not look like a number is a symbol. */
export const roughText = (name, row) =>
  `${name}(${row.map((value) => (/^-?[\d.]+(e[+-]?\d+)?$/.test(value) ? value : quoted(value))).join(", ")})`;
