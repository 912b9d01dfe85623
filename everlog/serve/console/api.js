// Requests and events.  Numbers come as text, since JavaScript's own are exact to 53 bits only.

import { byId } from "./dom.js";

const PREFIX = "/api/v1";
const KEY = "everlog-token";

export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    Object.assign(this, { status, code: error.code, diagnostics: error.diagnostics ?? [] });
  }
}

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

let asking = null;

/** Ask for the token, once for all requests that need it. */
function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = byId("token-dialog");
    if (sessionStorage.getItem(KEY)) byId("token-told").textContent = "This token is wrong.";
    dialog.addEventListener("cancel", (event) => event.preventDefault(), { once: true });
    dialog.addEventListener(
      "close",
      () => {
        sessionStorage.setItem(KEY, byId("token").value.trim());
        byId("token").value = "";
        asking = null;
        resolve();
      },
      { once: true },
    );
    dialog.showModal();
  });
  return asking;
}

let send = (path, options) => fetch(PREFIX + path, options);

/** Answer requests in another way than over the network: `work(path, options)` promises a Response. */
export function answerBy(work) {
  send = work;
}

async function fetched(path, options) {
  for (;;) {
    const response = await send(path, { ...options, headers: headers(options.headers), cache: "no-store" });
    if (response.status !== 401) return response;
    await askForToken();
  }
}

async function answer(response) {
  const body = await response.json();
  if (!response.ok) throw new Refused(response.status, body.error);
  return body;
}

const query = (parameters) => {
  const text = new URLSearchParams(parameters).toString();
  return text ? `?${text}` : "";
};

export const get = async (path, parameters = {}) => answer(await fetched(path + query(parameters), {}));

export const post = async (path, body, parameters = {}) =>
  answer(
    await fetched(path + query(parameters), {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "Content-Type": "application/json" },
    }),
  );

/** A file. */
export async function blob(path, parameters) {
  const response = await fetched(path + query(parameters), {});
  return response.ok ? response.blob() : answer(response);
}

export const remove = async (path) => answer(await fetched(path, { method: "DELETE" }));

// A browser has six connections to a service for all of its tabs, and keeps hidden pages.  So a page
// that was left, or a tab that has been hidden for a while, closes its stream.

const UNSEEN = 30000; // ms

let paused = false;
let resume = () => {};
let stream = null;

function pause() {
  paused = true;
  stream?.abort();
}

function goOn() {
  paused = false;
  resume();
}

function pauseWhenUnseen() {
  let waiting = null;
  addEventListener("pagehide", pause);
  addEventListener("pageshow", goOn);
  document.addEventListener("visibilitychange", () => {
    clearTimeout(waiting);
    if (document.hidden) waiting = setTimeout(pause, UNSEEN);
    else goOn();
  });
}

/** Server-sent events after that of the id `last`, by fetch: an EventSource could not send the token. */
export async function follow(onEvent, onState, last = null) {
  pauseWhenUnseen();
  for (;;) {
    if (paused) {
      onState("waiting", "paused");
      await new Promise((resolve) => {
        resume = resolve;
      });
    }
    try {
      stream = new AbortController();
      const headers = last === null ? {} : { "Last-Event-ID": last };
      const response = await fetched(`/changes${query({ numbers: "text" })}`, { headers, signal: stream.signal });
      if (!response.ok) throw new Error((await response.json()).error.message);
      onState("live", "live");
      for await (const [kind, data, id] of events(response.body)) {
        last = id ?? last;
        if (data) onEvent(kind, JSON.parse(data), last);
      }
      onState("lost", "the stream has ended; reconnecting");
    } catch (error) {
      if (!paused) onState("lost", `not connected (${error.message})`);
    }
    if (!paused) await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}

/** Kind, data and id of each event; an id may come without data. */
async function* events(body) {
  let [rest, kind, data, id] = ["", "message", "", null];
  for await (const part of texts(body)) {
    const lines = (rest + part).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("event: ")) kind = line.slice(7);
      else if (line.startsWith("data: ")) data += line.slice(6);
      else if (line === "") {
        yield [kind, data, id];
        [kind, data, id] = ["message", "", null];
      }
    }
  }
}

async function* texts(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
