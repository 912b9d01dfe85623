// Queries that were asked and saved, in this browser, for each program.

const MOST = 50;
let program = "";

export const setProgram = (name) => {
  program = name;
};

function read(kind) {
  try {
    const found = JSON.parse(localStorage.getItem(`everlog-${kind}:${program}`) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each === "string").slice(0, MOST) : [];
  } catch {
    return []; // storage is off, or was written by another program
  }
}

function write(kind, queries) {
  try {
    localStorage.setItem(`everlog-${kind}:${program}`, JSON.stringify(queries.slice(0, MOST)));
  } catch {
    // full or off: the list lasts as long as the page
  }
}

export const queries = (kind) => read(kind);

/** Put a query first in its list. */
export const remember = (kind, query) => write(kind, [query, ...read(kind).filter((each) => each !== query)]);

export const forget = (kind, query) => write(kind, read(kind).filter((each) => each !== query));
