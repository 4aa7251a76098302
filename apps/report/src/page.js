"use strict";
// What a pointer or the arrow keys are on is said in one box; nothing is fetched.
(() => {
  const tip = document.getElementById("tip");
  const hide = (drawing) => {
    tip.hidden = true;
    drawing.querySelectorAll(".found").forEach((mark) => mark.remove());
  };

  // The distance of a point to a rectangle.
  const distance = ([left, top, width, height], x, y) =>
    Math.hypot(Math.max(left - x, 0, x - left - width), Math.max(top - y, 0, y - top - height));

  const show = (drawing, hint) => {
    hide(drawing);
    const svg = drawing.querySelector("svg");
    const [left, top, width, height, text] = hint;
    const isPoint = width === 0 && height === 0;
    const mark = document.createElementNS(svg.namespaceURI, isPoint ? "circle" : "rect");
    const place = isPoint ? { cx: left, cy: top, r: 7 } : { x: left, y: top, width, height };
    Object.entries(place).forEach(([name, value]) => mark.setAttribute(name, value));
    mark.setAttribute("class", "found");
    svg.append(mark);
    tip.textContent = text;
    tip.hidden = false;
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const x = box.left + (left + width / 2) * scale;
    const y = box.top + top * scale;
    const size = tip.getBoundingClientRect();
    const most = document.documentElement.clientWidth - size.width - 4;
    tip.style.left = `${Math.max(4, Math.min(x - size.width / 2, most))}px`;
    tip.style.top = `${y - size.height - 12 < 0 ? y + height * scale + 14 : y - size.height - 12}px`;
  };

  // Words hold for all hints up to the next words, and have a gap for each number of a hint.
  const unpacked = (items) => {
    let words = [];
    const hints = [];
    items.forEach((item) => {
      if (typeof item === "string") {
        words = item.split("\u0001");
        return;
      }
      const numbers = item.pop().split("|");
      const [left, top, width = 0, height = 0] = item;
      const text = words.map((word, index) => word + (numbers[index] ?? "")).join("");
      hints.push([left, top, width, height, text]);
    });
    return hints;
  };

  const wire = (figure) => {
    const drawing = figure.querySelector(".drawing");
    const data = figure.querySelector("script.hints");
    let hints = null;
    let at = -1;
    // Read when they are first wanted.
    const known = () => (hints ??= unpacked(JSON.parse(data.textContent)));
    drawing.addEventListener("pointermove", (event) => {
      const svg = drawing.querySelector("svg");
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale;
      const y = (event.clientY - box.top) * scale;
      let best = Infinity;
      known().forEach((hint, index) => {
        const far = distance(hint, x, y);
        if (far < best) {
          best = far;
          at = index;
        }
      });
      if (best < 40) show(drawing, known()[at]);
      else hide(drawing);
    });
    drawing.addEventListener("pointerleave", () => hide(drawing));
    drawing.addEventListener("blur", () => hide(drawing));
    drawing.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") hide(drawing);
      if (!step || known().length === 0) return;
      event.preventDefault();
      at = (at + step + known().length) % known().length;
      show(drawing, known()[at]);
    });
    figure.querySelectorAll("button[data-save]").forEach((button) => {
      button.addEventListener("click", () => save(figure, button.dataset.save));
    });
  };
  document.querySelectorAll("figure").forEach(wire);
  // A live page says where figures are new.
  document.addEventListener("fresh", (event) => {
    tip.hidden = true;
    event.target.querySelectorAll("figure").forEach(wire);
  });

  const download = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const save = (figure, kind) => {
    hide(figure.querySelector(".drawing"));
    const svg = figure.querySelector("svg");
    const text = new XMLSerializer().serializeToString(svg);
    const blob = new Blob([text], { type: "image/svg+xml" });
    if (kind === "svg") {
      download(blob, `${figure.id}.svg`);
      return;
    }
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = svg.viewBox.baseVal.width * 2;
      canvas.height = svg.viewBox.baseVal.height * 2;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(image.src);
      canvas.toBlob((png) => download(png, `${figure.id}.png`));
    };
    image.src = URL.createObjectURL(blob);
  };

  const toggle = document.getElementById("theme");
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
  });
})();
