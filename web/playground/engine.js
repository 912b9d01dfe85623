// everlog in a worker: starts programs, answers requests, tells events; can be stopped.

const waiting = new Map(); // id → what to do with the answer
let number = 0;

export class Engine {
  constructor() {
    this.listen({});
    this.begin();
  }

  /** `onEvents(bytes)` gets what changed; `onState(text, error)` hears when Python is there, or not. */
  listen({ onEvents = () => {}, onState = null }) {
    Object.assign(this, { onEvents, onState });
    if (onState) this.ready.then(() => onState("ready"), (error) => onState("failed", error));
  }

  begin() {
    this.worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.ready = new Promise((resolve, reject) => {
      this.worker.onmessage = ({ data }) => {
        if (data.ready) resolve();
        else if (data.failed) reject(new Error(data.failed));
        else if (data.events) this.onEvents(data.events);
        else {
          waiting.get(data.id)?.resolve(data);
          waiting.delete(data.id);
        }
      };
    });
    this.ready.catch(() => {}); // whoever listens hears of it
  }

  send(message) {
    number += 1;
    const id = number;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...message });
    });
  }

  /** Run a program; a Response with its relations, or its errors. */
  start(text, facts, name) {
    return this.send({ start: { text, facts, name } }).then(response);
  }

  /** A request of the page, as to a service. */
  ask(target, { method = "GET", headers = {}, body = null }) {
    const lower = Object.fromEntries(Object.entries(headers).map(([key, value]) => [key.toLowerCase(), value]));
    return this.send({ method, target, headers: lower, body }).then(response);
  }

  /** End the worker, whatever it does, and begin another. */
  stop() {
    this.worker.terminate();
    for (const { reject } of waiting.values()) reject(new Error("stopped"));
    waiting.clear();
    this.begin();
    this.listen(this);
  }
}

const response = ({ status, media, body }) => new Response(body, { status, headers: { "Content-Type": media } });
