"use strict";
// The timeline: what the keys, the pointer and the search do, and what is said about it in words.

class Timeline {
  constructor(harts) {
    this.views = harts.map((hart) => new TimelineView(hart));
    this.view = this.views[0];
    this.box = byId("timeline-box");
    this.canvas = byId("timeline-canvas");
    this.scroller = byId("timeline-rows");
    this.waiting = false;
    byId("hart").addEventListener("change", (event) => this.take(Number(event.target.value)));
    this._listenToButtons();
    this._listenToPointer();
    this.box.addEventListener("keydown", (event) => this._key(event));
    this.scroller.addEventListener("scroll", () => this.redraw());
    new ResizeObserver(() => this.redraw()).observe(this.box);
    dark.addEventListener("change", () => this.redraw());
    byId("timeline-table").addEventListener("toggle", () => this._fillTable());
    this.take(0);
  }

  take(number) {
    this.view = this.views[number];
    this.search(byId("find").value);
    this.redraw();
  }

  /** Draw with the next frame. */
  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  draw() {
    const view = this.view, most = Math.round(window.innerHeight * 0.62);
    const height = Math.max(Math.min(view.height, most), 120);
    byId("timeline-space").style.height = `${view.height}px`;
    view.draw(sized(this.canvas, height), this.canvas.clientWidth, height, this.scroller.scrollTop);
    this._drawOverview();
    byId("range").textContent = this.rangeText();
    byId("detail").textContent = this.detailText();
  }

  _drawOverview() {
    const canvas = byId("overview"), view = this.view, pen = sized(canvas, 28), width = canvas.clientWidth;
    const theme = themeOf(pen);
    pen.fillStyle = theme.track;
    pen.fillRect(0, 0, width, 28);
    pen.fillStyle = theme.alarm;
    const scale = width / view.length;
    for (const it of view.missing) pen.fillRect(it.begin * scale - 1, 4, Math.max((it.end - it.begin) * scale, 2), 20);
    const x = view.begin / view.length * width, wide = Math.max(view.span / view.length * width, 3);
    pen.fillStyle = theme.accent;
    pen.globalAlpha = 0.22;
    pen.fillRect(x, 0, wide, 28);
    pen.globalAlpha = 1;
    pen.fillRect(x, 25, wide, 3);
  }

  rangeText() {
    const { hart, begin, end, length, span } = this.view;
    const of = hart.partial ? "part" : "trace";
    const whole = span >= length ? `the whole ${of}` : `${(100 * span / length).toPrecision(2)} % of the ${of}`;
    return `Hart ${hart.hart}, ${hart.unit} ${numberText(hart.begin + begin)} to ${numberText(hart.begin + end)}: ${whole}.`;
  }

  detailText() {
    const { hart } = this.view, said = [];
    if (hart.unit === "instructions") said.push("The axis counts instructions.");
    if (hart.least === 1) said.push(`Calls that took no time are merged: striped slices say how many there are.`);
    if (hart.least > 1) said.push(`Calls shorter than ${numberText(hart.least)} ${hart.unit} are merged: striped slices say how many there are.`);
    return [...said, ...hart.remarks].join(" ");
  }

  sliceText(number, i) {
    const { hart, rows } = this.view, row = rows[number], merged = row.calls[i];
    const where = `${hart.unit} ${numberText(hart.begin + row.begin[i])} to ${numberText(hart.begin + row.end[i])}`;
    const name = row.name[i] === 0 ? countText(merged, "call") + " too short to be drawn" : this.view.name(row.name[i]);
    const short = merged && row.name[i] !== 0 ? `\n${countText(merged, "short call")} in it` : "";
    const track = row.track ? `, ${row.track}` : "";
    return `${name}\n${numberText(row.end[i] - row.begin[i])} ${hart.unit}, level ${row.depth + 1}${track}\n${where}${short}`;
  }

  markText(mark, kind) {
    const { hart } = this.view, what = kind === "missing" ? "Missing: " : "Trap: ";
    const more = mark.times > 1 ? `\nand ${numberText(mark.times - 1)} more near to it` : "";
    return `${what}${mark.text}\n${hart.unit} ${numberText(hart.begin + mark.begin)}${more}`;
  }

  say(text) {
    byId("timeline-live").textContent = text.replaceAll("\n", "; ");
  }

  show(begin, end) {
    this.view.show(begin, end);
    this.redraw();
    if (byId("timeline-table").open) this._fillTable();
  }

  zoom(factor, around) {
    this.view.zoom(factor, around);
    this.show(this.view.begin, this.view.end);
  }

  /** Select a slice, and bring it into view. */
  select(number, i) {
    const view = this.view, row = view.rows[number];
    view.selected = [number, i];
    const length = row.end[i] - row.begin[i];
    if (row.begin[i] >= view.end || row.end[i] <= view.begin || length * 400 < view.span) {
      const span = Math.min(view.span, Math.max(length * 20, 8));
      const middle = (row.begin[i] + row.end[i]) / 2;
      view.show(middle - span / 2, middle + span / 2);
    }
    const y = TOP + 2 * MARKS + number * ROW, box = this.scroller;
    if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
    this.say(this.sliceText(number, i));
    this.show(view.begin, view.end);
  }

  /** Select what is in the middle of a row, the outermost first. */
  _selectMiddle() {
    const view = this.view, middle = (view.begin + view.end) / 2;
    for (let number = 0; number < view.rows.length; number++) {
      const row = view.rows[number], i = firstEndingAfter(row, middle);
      if (i < row.count && row.begin[i] < view.end) return this.select(number, i);
    }
    this.say("No call is in view.");
  }

  _selectBeside(step) {
    if (!this.view.selected) return this._selectMiddle();
    const [number, i] = this.view.selected;
    if (i + step >= 0 && i + step < this.view.rows[number].count) this.select(number, i + step);
    else this.say(step < 0 ? "This is the first call at this level." : "This is the last call at this level.");
  }

  _selectLevel(step) {
    if (!this.view.selected) return this._selectMiddle();
    const [number, i] = this.view.selected, rows = this.view.rows, here = rows[number], other = rows[number + step];
    if (other && other.track === here.track) {
      const to = firstEndingAfter(other, here.begin[i]);
      if (to < other.count && other.begin[to] < here.end[i]) return this.select(number + step, to);
    }
    this.say(step < 0 ? "Its caller is not known." : "It made no call that is drawn.");
  }

  search(text) {
    const view = this.view, wanted = text.trim().toLowerCase(), calls = view.search(wanted);
    const of = wanted && `${countText(calls, "call")} of ${countText(view.matches.size, "function")}`;
    const found = !wanted ? "" : calls ? of : "No call that is drawn";
    byId("found").textContent = found;
    this.redraw();
  }

  /** Go to the next or the previous match, by where they begin. */
  match(step) {
    const view = this.view, selected = view.selected;
    if (!view.matches || !view.matches.size) return this.say("Nothing was searched for, or nothing was found.");
    const from = selected ? view.rows[selected[0]].begin[selected[1]] : step > 0 ? view.begin - 1 : view.end;
    let best = null, at = step * Infinity;
    view.rows.forEach((row, number) => {
      for (const i of row.matched) {
        const begin = row.begin[i], beside = selected && begin === from && (number - selected[0]) * step > 0;
        if (((begin - from) * step > 0 || beside) && (begin - at) * step < 0) [best, at] = [[number, i], begin];
      }
    });
    if (best) this.select(...best);
    else this.say(step > 0 ? "There is no later match." : "There is no earlier match.");
  }

  nextGap() {
    const view = this.view, middle = (view.begin + view.end) / 2 + view.span / 1000;
    if (!view.missing.length) return this.say("Nothing is missing in the trace of this hart.");
    const found = view.missing.find((it) => (it.begin + it.end) / 2 > middle) || view.missing[0];
    const place = (found.begin + found.end) / 2, span = Math.max(Math.min(view.span, view.length / 20), found.end - found.begin);
    this.say(this.markText(found, "missing"));
    // At the ends of the trace the place cannot be in the middle: it is gone on from where the view is.
    this.show(place - span / 2, place + span / 2);
  }

  _zoomToSelected() {
    if (!this.view.selected) return this._selectMiddle();
    const [number, i] = this.view.selected, row = this.view.rows[number], rim = (row.end[i] - row.begin[i]) / 20;
    this.show(row.begin[i] - rim, row.end[i] + rim);
    this.say(`${this.sliceText(number, i)}. ${this.rangeText()}`);
  }

  _key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target !== this.box) return;
    const view = this.view, move = (share) => () => this._move(share * view.span);
    const whole = () => this._whole();
    const actions = {
      "+": () => this._zoomAndSay(0.5), "=": () => this._zoomAndSay(0.5), "-": () => this._zoomAndSay(2),
      0: whole, Home: whole, Enter: () => this._zoomToSelected(), n: () => this.match(1), p: () => this.match(-1),
      g: () => this.nextGap(), ArrowUp: () => this._selectLevel(-1), ArrowDown: () => this._selectLevel(1),
      ArrowLeft: event.shiftKey ? () => this._selectBeside(-1) : move(-0.2),
      ArrowRight: event.shiftKey ? () => this._selectBeside(1) : move(0.2),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  _move(by) {
    const { begin, end, length } = this.view, step = Math.min(Math.max(by, -begin), length - end);
    this.show(begin + step, end + step);
    this.say(this.rangeText());
  }

  _whole() {
    this.show(0, this.view.length);
    this.say(this.rangeText());
  }

  _zoomAndSay(factor) {
    const view = this.view;
    let around;
    if (view.selected) {
      const row = view.rows[view.selected[0]], i = view.selected[1], middle = (row.begin[i] + row.end[i]) / 2;
      if (middle > view.begin && middle < view.end) around = middle;
    }
    this.zoom(factor, around);
    this.say(this.rangeText());
  }

  _listenToButtons() {
    byId("zoom-in").addEventListener("click", () => this._zoomAndSay(0.5));
    byId("zoom-out").addEventListener("click", () => this._zoomAndSay(2));
    byId("zoom-all").addEventListener("click", () => this._whole());
    byId("loss-next").addEventListener("click", () => this.nextGap());
    byId("find-next").addEventListener("click", () => this.match(1));
    byId("find-previous").addEventListener("click", () => this.match(-1));
    byId("find").addEventListener("input", (event) => this.search(event.target.value));
    byId("find").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.match(event.shiftKey ? -1 : 1);
    });
  }

  _listenToPointer() {
    const canvas = this.canvas, tip = byId("timeline-tip");
    let drag = null;
    const place = (event) => this.view.begin + event.offsetX * this.view.span / canvas.clientWidth;
    const under = (event) => this.view.at(event.offsetX, event.offsetY + this.scroller.scrollTop, canvas.clientWidth);
    const textOf = (it) => it && ("mark" in it ? this.markText(it.mark, it.kind) : this.sliceText(it.row, it.slice));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const by = event.deltaY || event.deltaX;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this._move(by / 500 * this.view.span);
      else this.zoom(Math.exp(Math.max(-200, Math.min(200, by)) / 300), place(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.clientX, begin: this.view.begin, end: this.view.end, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return showTip(tip, this.box, event, textOf(under(event)));
      const by = event.clientX - drag.x;
      drag.moved = drag.moved || Math.abs(by) > 3;
      if (drag.moved) {
        const step = -by * this.view.span / canvas.clientWidth;
        const kept = Math.min(Math.max(step, -drag.begin), this.view.length - drag.end);
        this.show(drag.begin + kept, drag.end + kept);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const found = drag && !drag.moved ? under(event) : null;
      drag = null;
      if (found && "slice" in found) this.select(found.row, found.slice);
      else if (found) this.say(textOf(found));
    });
    canvas.addEventListener("dblclick", () => this._zoomToSelected());
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    byId("overview").addEventListener("pointerdown", (event) => {
      const at = event.offsetX / event.target.clientWidth * this.view.length, half = this.view.span / 2;
      this.show(at - half, at + half);
    });
  }

  /** The calls in view, by levels: the first 200, for readers that cannot see the picture. */
  _fillTable() {
    const table = byId("timeline-table"), view = this.view, rows = [];
    if (!table.open) return;
    for (const [number, row] of view.rows.entries()) {
      for (let i = firstEndingAfter(row, view.begin); i < row.count && row.begin[i] < view.end && rows.length < 200; i++) {
        const name = row.name[i] === 0 ? countText(row.calls[i], "short call") : view.name(row.name[i]);
        const button = document.createElement("button");
        button.type = "button";
        button.className = "link";
        button.textContent = name;
        button.addEventListener("click", () => { this.select(number, i); });
        rows.push([button, String(row.depth + 1), numberText(view.hart.begin + row.begin[i]), numberText(row.end[i] - row.begin[i])]);
      }
    }
    const note = document.createElement("p");
    note.className = "help";
    note.textContent = rows.length === 200 ? `The first 200 calls. ${this.rangeText()}` : this.rangeText();
    table.lastElementChild.replaceChildren(note, tableOf(["Function", "Level", `From (${view.hart.unit})`, "Length"], rows));
  }
}

const timeline = report.harts.length ? new Timeline(report.harts) : null;
