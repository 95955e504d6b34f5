"use strict";
// The slices of a hart, unpacked, and how they are drawn: a frame takes as long as the picture is wide, however many
// slices there are, because what is narrower than a pixel is drawn together.

const ROW = 20, MARKS = 16, TOP = 24;

/** A row of slices in order: where each begins and ends, the number of its name, the calls in it that are not drawn. */
function unpackedRow(row) {
  const text = atob(row.packed), count = row.slices;
  const made = { track: row.track, depth: row.depth, count, matched: null, begin: new Float64Array(count), end: new Float64Array(count),
    name: new Uint32Array(count), calls: new Float64Array(count) };
  let at = 0, last = 0;
  const next = () => {
    let value = 0, scale = 1, byte;
    do {
      byte = text.charCodeAt(at++);
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value;
  };
  for (let i = 0; i < count; i++) {
    made.begin[i] = last + next();
    made.end[i] = last = made.begin[i] + next();
    made.name[i] = next();
    made.calls[i] = next();
  }
  return made;
}

/** The first slice from `from` on that ends after a place. */
function firstEndingAfter(row, place, from = 0) {
  let step = 1, low = from, high = from;
  while (high < row.count && row.end[high] <= place) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  high = Math.min(high, row.count);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.end[middle] <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The same among the slices that were searched for, as a number of `row.matched`. */
function firstMatchAfter(row, place, from) {
  let low = from, high = row.matched.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.end[row.matched[middle]] <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}

class TimelineView {
  constructor(hart) {
    this.hart = hart;
    this.length = Math.max(hart.end - hart.begin, 1);
    this.rows = hart.rows.map(unpackedRow);
    this.begin = 0;
    this.end = this.length;
    this.matches = null;  // the numbers of the names that were searched for
    this.selected = null;  // [row, slice]
    this.missing = hart.missing.map(([begin, end, text, times]) => this._mark(begin, end, text, times));
    this.traps = hart.traps.map(([begin, end, text, times]) => this._mark(begin, end, text, times));
  }

  _mark(begin, end, text, times) {
    return { begin: begin - this.hart.begin, end: end - this.hart.begin, text: this.hart.texts[text], times };
  }

  get height() {
    return TOP + 2 * MARKS + this.rows.length * ROW + 8;
  }

  get span() {
    return this.end - this.begin;
  }

  name(number) {
    const [name, trap] = this.hart.names[number];
    return trap ? `⚡ ${name}` : name;
  }

  /** Look for slices of functions with a text in their names, "" for none; return how many were found. */
  search(wanted) {
    this.matches = wanted ? new Set() : null;
    this.hart.names.forEach(([name], number) => {
      if (wanted && number && name.toLowerCase().includes(wanted)) this.matches.add(number);
    });
    let found = 0;
    for (const row of this.rows) {
      row.matched = wanted ? [] : null;
      for (let i = 0; wanted && i < row.count; i++) if (this.matches.has(row.name[i])) row.matched.push(i);
      found += wanted ? row.matched.length : 0;
    }
    return found;
  }

  /** Show from one place to another: at least 8 units, and nothing outside. */
  show(begin, end) {
    const span = Math.min(Math.max(end - begin, 8), this.length);
    this.begin = Math.min(Math.max((begin + end - span) / 2, 0), this.length - span);
    this.end = this.begin + span;
  }

  zoom(factor, around = (this.begin + this.end) / 2) {
    const left = (around - this.begin) * factor, right = (this.end - around) * factor;
    this.show(around - left, around + right);
  }

  draw(pen, width, height, scroll) {
    const theme = themeOf(pen);
    pen.fillStyle = theme.back;
    pen.fillRect(0, 0, width, height);
    pen.save();
    pen.translate(0, -scroll);
    this._drawGrid(pen, width, theme, scroll + height);
    this.rows.forEach((row, number) => {
      const y = TOP + 2 * MARKS + number * ROW;
      if (y + ROW >= scroll && y <= scroll + height) this._drawRow(pen, row, y, width, theme);
    });
    this._drawMissing(pen, width, theme, scroll + height);
    this._drawTraps(pen, width, theme);
    if (this.selected) this._drawSelected(pen, width, theme);
    pen.restore();
  }

  _drawGrid(pen, width, theme, bottom) {
    const least = this.span * 110 / width, power = 10 ** Math.floor(Math.log10(least));
    const step = Math.max([1, 2, 5, 10].find((it) => it * power >= least) * power, 1);
    const scale = width / this.span, start = this.hart.begin;
    pen.lineWidth = 1;
    for (let at = Math.ceil((start + this.begin) / step) * step; at <= start + this.end; at += step) {
      const x = Math.round((at - start - this.begin) * scale) + 0.5;
      pen.strokeStyle = theme.line;
      pen.beginPath();
      pen.moveTo(x, TOP - 6);
      pen.lineTo(x, bottom);
      pen.stroke();
      pen.fillStyle = theme.soft;
      if (x + 60 < width) pen.fillText(numberText(at), x + 4, 11);
    }
  }

  _drawRow(pen, row, y, width, theme) {
    const scale = width / this.span, { begin, end, name } = row, high = ROW - 2, searched = row.matched !== null;
    let i = firstEndingAfter(row, this.begin), thinFrom = -1, thinTo = -1;
    const flush = () => {
      pen.fillStyle = searched ? theme.track : theme.thin;
      if (thinFrom >= 0) pen.fillRect(thinFrom, y, thinTo - thinFrom, high);
      thinFrom = -1;
    };
    while (i < row.count && begin[i] < this.end) {
      const left = (begin[i] - this.begin) * scale, right = (end[i] - this.begin) * scale;
      if (right - left < 1.5) {  // together with all others in this pixel
        const x = Math.floor(left);
        if (x > thinTo) flush();
        if (thinFrom < 0) thinFrom = x;
        thinTo = x + 1;
        i = Math.max(firstEndingAfter(row, this.begin + (x + 1) / scale, i), i + 1);
        continue;
      }
      flush();
      const x = Math.max(left, -2), wide = Math.max(Math.min(right, width + 2) - x - (right - left > 4 ? 1 : 0), 1);
      const match = searched && this.matches.has(name[i]);
      pen.fillStyle = name[i] === 0 ? theme.short : searched && !match ? theme.track : colourOf(this.hart.names[name[i]][0]);
      pen.fillRect(x, y, wide, high);
      if (wide > 22) {
        pen.fillStyle = searched && !match ? theme.soft : theme.text;
        const shown = name[i] === 0 ? countText(row.calls[i], "short call") : this.name(name[i]);
        boxText(pen, shown, Math.max(x, 0), y + high / 2 + 1, wide - Math.max(-x, 0));
      }
      i++;
    }
    flush();
    if (searched) this._drawMatches(pen, row, y, width, theme);
  }

  /** Mark the matches of a row, those that are narrower than a pixel, too. */
  _drawMatches(pen, row, y, width, theme) {
    const scale = width / this.span, { begin, end, matched } = row;
    let j = firstMatchAfter(row, this.begin, 0);
    pen.fillStyle = theme.accent;
    while (j < matched.length && begin[matched[j]] < this.end) {
      const left = (begin[matched[j]] - this.begin) * scale, wide = (end[matched[j]] - this.begin) * scale - left;
      if (wide < 4) {
        const x = Math.floor(left);
        pen.fillRect(x, y, Math.max(wide, 1), ROW - 2);
        j = Math.max(firstMatchAfter(row, this.begin + (x + 1) / scale, j), j + 1);
      } else {
        pen.fillRect(left, y + ROW - 5, wide - 1, 3);
        j++;
      }
    }
  }

  /** What is missing is as high as everything, and never narrower than can be seen. */
  _drawMissing(pen, width, theme, bottom) {
    const scale = width / this.span;
    let drawn = -1;
    for (const it of this.missing) {
      if (it.end < this.begin || it.begin > this.end) continue;
      const middle = ((it.begin + it.end) / 2 - this.begin) * scale, wide = Math.max((it.end - it.begin) * scale, 4);
      if (middle + wide / 2 <= drawn) continue;
      drawn = middle + wide / 2;
      const x = Math.max(middle - wide / 2, -8), shown = Math.min(middle + wide / 2, width + 8) - x;
      pen.fillStyle = theme.missing;
      pen.fillRect(x, TOP - 4, shown, MARKS);
      pen.globalAlpha = wide > 6 ? 1 : 0.45;
      pen.fillRect(x, TOP - 4 + MARKS, shown, bottom);
      pen.globalAlpha = 1;
      pen.strokeStyle = theme.alarm;
      pen.strokeRect(x + 0.5, TOP - 3.5, Math.max(shown - 1, 1), MARKS - 1);
    }
  }

  _drawTraps(pen, width, theme) {
    const scale = width / this.span;
    let drawn = -9;
    pen.fillStyle = theme.text;
    for (const it of this.traps) {
      const x = (it.begin - this.begin) * scale;
      if (x < -4 || x > width + 4 || x - drawn < 3) continue;
      drawn = x;
      pen.beginPath();
      pen.moveTo(x - 4, TOP + MARKS - 2);
      pen.lineTo(x + 4, TOP + MARKS - 2);
      pen.lineTo(x, TOP + 2 * MARKS - 5);
      pen.fill();
    }
  }

  _drawSelected(pen, width, theme) {
    const [number, i] = this.selected, row = this.rows[number], scale = width / this.span;
    const x = Math.max((row.begin[i] - this.begin) * scale, -4);
    const right = Math.min((row.end[i] - this.begin) * scale, width + 4);
    pen.strokeStyle = theme.text;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, TOP + 2 * MARKS + number * ROW - 0.5, Math.max(right - x - 2, 1), ROW - 1);
  }

  /** What is at a point of the picture: {row, slice}, {mark}, or null. */
  at(x, y, width) {
    const place = this.begin + x * this.span / width, near = 5 * this.span / width;
    const lane = y < TOP + MARKS - 4 ? this.missing : y < TOP + 2 * MARKS ? this.traps : null;
    if (lane) {
      const mark = lane.find((it) => it.begin - near <= place && place <= it.end + near);
      return mark ? { mark, kind: lane === this.missing ? "missing" : "trap" } : null;
    }
    const number = Math.floor((y - TOP - 2 * MARKS) / ROW), row = this.rows[number];
    if (!row) return null;
    const i = firstEndingAfter(row, place);
    return i < row.count && row.begin[i] <= place ? { row: number, slice: i } : null;
  }
}
