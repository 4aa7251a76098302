"use strict";
// Takes over the parts of the page that an event has changed, and says how old they are.
(() => {
  const main = document.querySelector("main");
  const state = document.getElementById("state");
  const said = document.getElementById("said");
  const age = document.getElementById("age");
  const query = new URLSearchParams(location.search);
  const address = `events?token=${encodeURIComponent(query.get("token") ?? "")}`;
  const RETRY_MS = 3000;
  let shown = [];
  let changed = null;

  const say = (how, text) => {
    state.dataset.is = how;
    if (said.textContent !== text) said.textContent = text;
  };

  const places = (part) => [...part.querySelectorAll("details, .scroll, .drawing")];

  // What is open, scrolled or has the focus stays so.
  const replace = (old, part) => {
    const before = places(old);
    places(part).forEach((place, index) => {
      const was = before[index];
      if (was?.tagName === place.tagName && was.open) place.open = true;
    });
    old.replaceWith(part);
    places(part).forEach((place, index) => {
      const was = before[index];
      if (!was || was.className !== place.className) return;
      place.scrollTop = was.dataset.top ?? 0;
      if (was.dataset.focus) place.focus({ preventScroll: true });
    });
  };

  const show = (parts) => {
    const active = document.activeElement;
    parts.forEach((html, index) => {
      if (shown[index] === html) return;
      const template = document.createElement("template");
      template.innerHTML = html;
      const part = template.content.firstElementChild;
      const old = main.children[index];
      if (old) {
        old.querySelectorAll(".scroll").forEach((one) => { one.dataset.top = one.scrollTop; });
        if (old.contains(active)) active.dataset.focus = "yes";
        replace(old, part);
      } else {
        main.append(part);
      }
      part.dispatchEvent(new CustomEvent("fresh", { bubbles: true }));
    });
    while (main.children.length > parts.length) main.lastElementChild.remove();
    shown = parts;
  };

  const listen = () => {
    const source = new EventSource(address);
    source.onmessage = (event) => {
      const seen = JSON.parse(event.data);
      say(seen.is_there ? "there" : "gone", seen.state);
      show(seen.parts);
      changed = Date.now();
    };
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) {
        say("lost", "afar watch does not answer. This page goes on when it does.");
        return;
      }
      source.close();
      say("lost", "afar watch refuses this page: open the address that it has printed last, or " +
        "close other pages of it.");
      setTimeout(listen, RETRY_MS);
    };
  };

  setInterval(() => {
    if (changed === null) return;
    const seconds = Math.round((Date.now() - changed) / 1000);
    const text = seconds < 2 ? "" : `Last change ${seconds} s ago.`;
    if (age.textContent !== text) age.textContent = text;
  }, 1000);

  listen();
})();
