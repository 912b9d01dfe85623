// Elements from values: text never becomes markup.

export const byId = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

function made(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

export const element = (tag, attributes = {}, ...children) => made(document.createElement(tag), attributes, children);

export const svg = (tag, attributes = {}, ...children) =>
  made(document.createElementNS(SVG, tag), attributes, children);

/** Tell somebody who looks, and, since these are live regions, somebody who listens. */
export function tell(id, text) {
  byId(id).textContent = text;
}

export function problem(error) {
  const box = byId("problem");
  box.hidden = !error;
  box.textContent = error ? error.message : "";
}

/** A form that does something; what fails is shown above the panels, unless `work` shows it. */
export function onSubmit(form, work) {
  byId(form).addEventListener("submit", (event) => {
    event.preventDefault();
    Promise.resolve(work()).catch(problem);
  });
}

export const onClick = (id, work) => byId(id).addEventListener("click", () => Promise.resolve(work()).catch(problem));
