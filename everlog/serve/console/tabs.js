// The panels, one at a time, and the links that name them: #/query?query=path(1, x)&step=3

import { byId } from "./dom.js";

const shown = new Map(); // panel → what to do when it is shown
let current = "";

export const panels = () => [...document.querySelectorAll("#tabs [role=tab]")].map((tab) => tab.getAttribute("aria-controls"));

export const currentPanel = () => current;

/** Call `work(parameters)` each time a panel is shown. */
export function onShow(panel, work) {
  shown.set(panel, work);
}

const given = (parameters) => new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== ""));

/** The part of an address after `#`; everything but letters and digits of it is encoded. */
export function linkTo(panel, parameters = {}) {
  const text = given(parameters).toString();
  return `#/${panel}${text ? `?${text}` : ""}`;
}

/** Show a panel; the address names it, so that Back leads to the last one. */
export function show(panel, parameters = {}, { replace = false } = {}) {
  const link = linkTo(panel, parameters);
  if (link !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", link);
  display(panel, given(parameters));
}

function display(panel, parameters) {
  current = panel;
  for (const each of panels()) {
    byId(each).hidden = each !== panel;
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === panel));
    tab.tabIndex = each === panel ? 0 : -1;
  }
  shown.get(panel)?.(parameters);
}

function fromAddress() {
  const [panel, text = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  display(panels().includes(panel) ? panel : panels()[0], new URLSearchParams(text));
}

function onKey(event) {
  const all = panels();
  const at = all.indexOf(current);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const panel = all[(to + all.length) % all.length];
  show(panel);
  byId(`tab-${panel}`).focus();
}

export function setUpTabs() {
  for (const panel of panels()) byId(`tab-${panel}`).addEventListener("click", () => show(panel));
  byId("tabs").addEventListener("keydown", onKey);
  addEventListener("hashchange", fromAddress);
  fromAddress();
}
