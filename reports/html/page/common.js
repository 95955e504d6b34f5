"use strict";
// What the scripts of the page share: its data, numbers and colours.

const report = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const FONT = '12px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

const byId = (id) => document.getElementById(id);
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const numberText = (value) => grouped.format(Math.round(value));
const countText = (value, what) => `${numberText(value)} ${value === 1 ? what : what + "s"}`;

/** The colours of the style sheet, until the user prefers others. */
let theme = null;
dark.addEventListener("change", () => { theme = null; colours.clear(); });
function themeOf(pen) {
  if (theme) return theme;
  const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(`--${name}`).trim();
  theme = { missing: stripes(pen, of("alarm"), of("alarm-back")), short: stripes(pen, of("line"), of("track")) };
  for (const name of ["text", "soft", "back", "track", "line", "accent", "alarm", "thin"]) theme[name] = of(name);
  return theme;
}

/** The colour of a function: the same wherever its name is, with text on it that can be read. */
const colours = new Map();
function colourOf(name) {
  let colour = colours.get(name);
  if (!colour) {
    let hash = 2166136261;
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    const hue = (hash >>> 0) % 360, step = ((hash >>> 9) & 3) * 3;
    colour = dark.matches ? `hsl(${hue} 38% ${20 + step}%)` : `hsl(${hue} 52% ${76 + step}%)`;
    colours.set(name, colour);
  }
  return colour;
}

/** A canvas as wide as its place, sharp on every screen; `height` in CSS pixels. */
function sized(canvas, height) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  const wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = FONT;
  pen.textBaseline = "middle";
  return pen;
}

/** Text in a box, cut where it does not fit: without measuring, which is slow. */
function boxText(pen, text, x, y, width) {
  const most = Math.floor((width - 8) / 6.3);
  if (most < 2) return;
  pen.fillText(text.length > most ? text.slice(0, most - 1) + "…" : text, x + 4, y, width - 6);
}

/** Stripes, for what is not known: they are told apart without colours, too. */
function stripes(pen, colour, back) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const on = tile.getContext("2d");
  on.fillStyle = back;
  on.fillRect(0, 0, 8, 8);
  on.strokeStyle = colour;
  on.lineWidth = 2;
  on.beginPath();
  for (const from of [-8, 0, 8]) {
    on.moveTo(from - 1, 9);
    on.lineTo(from + 9, -1);
  }
  on.stroke();
  return pen.createPattern(tile, "repeat");
}

function showTip(tip, box, event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const place = box.getBoundingClientRect(), x = event.clientX - place.left, y = event.clientY - place.top;
  tip.style.left = `${Math.max(4, Math.min(x + 14, place.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${y + 20 + tip.offsetHeight > place.height ? Math.max(2, y - tip.offsetHeight - 10) : y + 18}px`;
}

/** A table: `rows` of texts; a cell may be a node. The first column has the headings of the rows. */
function tableOf(heads, rows) {
  const table = document.createElement("table");
  table.className = "figures";
  const line = table.createTHead().insertRow();
  heads.forEach((head, column) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = head;
    cell.className = column ? "n" : "";
    line.append(cell);
  });
  const body = table.createTBody();
  for (const row of rows) {
    const made = body.insertRow();
    row.forEach((content, column) => {
      const cell = document.createElement(column ? "td" : "th");
      if (!column) cell.scope = "row";
      cell.className = column ? "n" : "";
      cell.append(content);
      made.append(cell);
    });
  }
  return table;
}
