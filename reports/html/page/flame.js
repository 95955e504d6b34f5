"use strict";
// The flame graph: the tree of calls, callers above what they called, as wide as the instructions in them.

const FLAME_ROW = 20;

class Flame {
  constructor(columns) {
    [this.parent, this.names, this.trap, this.calls, this.own, this.total, this.ticks, this.estimate, this.leftOut] = columns;
    this.below = this.names.map(() => []);
    this.roots = [];
    this.parent.forEach((parent, number) => (parent < 0 ? this.roots : this.below[parent]).push(number));
    for (const list of [this.roots, ...this.below]) list.sort((one, other) => this.total[other] - this.total[one]);
    this.whole = this.roots.reduce((sum, it) => sum + this.total[it], 0);
    this.zoomed = -1;
    this.selected = -1;
    this.wanted = "";
    this.boxes = [];
    this.box = byId("flame-box");
    this.canvas = byId("flame-canvas");
    this._listen();
    this.draw();
  }

  name(number) {
    return number < 0 ? "everything" : this.trap[number] ? `⚡ ${this.names[number]}` : this.names[number];
  }

  text(number) {
    if (number < 0) return `everything: ${countText(this.whole, "instruction")}`;
    const share = (100 * this.total[number] / Math.max(this.whole, 1)).toFixed(1);
    const ticks = report.ticks ? `\n${countText(this.ticks[number], "tick")}, of which ${numberText(this.estimate[number])} an estimate` : "";
    const rest = this.leftOut[number] ? `\n${countText(this.leftOut[number], "small function")} below it left out` : "";
    return `${this.name(number)}\n${countText(this.total[number], "instruction")} (${share} %), ${numberText(this.own[number])} of its own\n${countText(this.calls[number], "call")}${ticks}${rest}`;
  }

  path(number) {
    const found = [];
    for (let at = number; at >= 0; at = this.parent[at]) found.unshift(at);
    return found;
  }

  draw() {
    const width = this.canvas.clientWidth;
    this.boxes = [];
    const above = this.path(this.zoomed);
    above.forEach((number, level) => this.boxes.push([number, 0, level, width]));
    const tops = this.zoomed < 0 ? this.roots : this.below[this.zoomed];
    const scale = width / Math.max(this.zoomed < 0 ? this.whole : this.total[this.zoomed], 1);
    this._place(tops, 0, above.length, scale);
    const levels = Math.max(...this.boxes.map((it) => it[2] + 1), 3);
    const pen = sized(this.canvas, levels * FLAME_ROW + 2);
    const { text, soft, back, track, accent } = themeOf(pen);
    pen.fillStyle = back;
    pen.fillRect(0, 0, width, levels * FLAME_ROW + 2);
    for (const [number, x, level, wide] of this.boxes) {
      const match = this.wanted && this.names[number].toLowerCase().includes(this.wanted), y = level * FLAME_ROW + 1;
      pen.fillStyle = this.wanted && !match ? track : colourOf(this.names[number]);
      pen.fillRect(x, y, Math.max(wide - (wide > 3 ? 1 : 0), 0.5), FLAME_ROW - 1);
      if (match) {
        pen.fillStyle = accent;
        pen.fillRect(x, y + FLAME_ROW - 4, Math.max(wide - 1, 1), 3);
      }
      if (wide > 22) {
        pen.fillStyle = this.wanted && !match ? soft : text;
        boxText(pen, this.name(number), x, y + FLAME_ROW / 2, wide - 1);
      }
      if (number === this.selected) {
        pen.strokeStyle = text;
        pen.lineWidth = 2;
        pen.strokeRect(x + 1, y, Math.max(wide - 3, 1), FLAME_ROW - 1);
      }
    }
  }

  /** Place functions beside each other, and below them what they called; what is narrower than half a pixel is not. */
  _place(numbers, left, level, scale) {
    const waiting = [[numbers, left, level]];
    while (waiting.length) {
      const [list, from, depth] = waiting.pop();
      let x = from;
      for (const number of list) {
        const wide = this.total[number] * scale;
        if (wide < 0.5) break;
        this.boxes.push([number, x, depth, wide]);
        waiting.push([this.below[number], x, depth + 1]);
        x += wide;
      }
    }
  }

  select(number) {
    this.selected = number;
    byId("flame-live").textContent = this.text(number).replaceAll("\n", "; ");
    this.draw();
  }

  zoom(number) {
    this.zoomed = number;
    this.select(number);
    this._fillTable();
  }

  search(text) {
    this.wanted = text.trim().toLowerCase();
    let found = 0;
    const own = this.names.reduce((sum, name, number) => {
      if (!this.wanted || !name.toLowerCase().includes(this.wanted)) return sum;
      found++;
      return sum + this.own[number];
    }, 0);
    const share = (100 * own / Math.max(this.whole, 1)).toFixed(1);
    byId("flame-found").textContent = !this.wanted ? "" : found ? `${countText(found, "place")}, ${share} % of the instructions are their own` : "Not found";
    this.draw();
  }

  /** Arrows: to the largest callee, to the caller, to what is beside it. */
  _key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target !== this.box) return;
    const here = this.selected, up = here < 0 ? -1 : this.parent[here];
    const beside = up < 0 ? this.roots : this.below[up], at = beside.indexOf(here);
    const moves = { ArrowDown: () => (here < 0 ? this.roots : this.below[here])[0], ArrowUp: () => up,
      ArrowLeft: () => beside[at - 1], ArrowRight: () => beside[at + 1] };
    if (moves[event.key]) {
      const to = moves[event.key]();
      if (to !== undefined) this.select(to);
    } else if (event.key === "Enter") {
      this.zoom(here);
    } else if (event.key === "Escape" || event.key === "Backspace") {
      this.zoom(this.zoomed < 0 ? -1 : this.parent[this.zoomed]);
    } else {
      return;
    }
    event.preventDefault();
  }

  _listen() {
    const tip = byId("flame-tip");
    const under = (event) => {
      const level = Math.floor((event.offsetY - 1) / FLAME_ROW);
      const box = this.boxes.find(([, x, depth, wide]) => depth === level && x <= event.offsetX && event.offsetX < x + wide);
      return box ? box[0] : -1;
    };
    this.canvas.addEventListener("pointermove", (event) => {
      const number = under(event);
      showTip(tip, this.box, event, number < 0 ? "" : this.text(number));
    });
    this.canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    this.canvas.addEventListener("click", (event) => this.zoom(under(event)));
    this.box.addEventListener("keydown", (event) => this._key(event));
    byId("flame-all").addEventListener("click", () => this.zoom(-1));
    byId("flame-up").addEventListener("click", () => this.zoom(this.zoomed < 0 ? -1 : this.parent[this.zoomed]));
    byId("flame-find").addEventListener("input", (event) => this.search(event.target.value));
    byId("flame-table").addEventListener("toggle", () => this._fillTable());
    new ResizeObserver(() => this.draw()).observe(this.box);
    dark.addEventListener("change", () => this.draw());
  }

  /** Where the graph is, and what was called there: for readers that cannot see the picture. */
  _fillTable() {
    const table = byId("flame-table");
    if (!table.open) return;
    const link = (number) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "link";
      button.textContent = this.name(number);
      button.addEventListener("click", () => this.zoom(number));
      return button;
    };
    const place = document.createElement("p");
    for (const number of [-1, ...this.path(this.zoomed)]) place.append(number < 0 ? "" : " › ", link(number));
    const called = (this.zoomed < 0 ? this.roots : this.below[this.zoomed]).slice(0, 500);
    const rows = called.map((it) => [link(it), numberText(this.calls[it]), numberText(this.own[it]), numberText(this.total[it]),
      (100 * this.total[it] / Math.max(this.whole, 1)).toFixed(1)]);
    table.lastElementChild.replaceChildren(place, tableOf(["Function", "Calls", "Own instructions", "With callees", "%"], rows));
  }
}

const flame = report.flame.length ? new Flame(report.flame) : null;
