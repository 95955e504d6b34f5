"use strict";
// The source, with how often each line ran; only the file that is shown is in the page's tree.

const NO_CODE = -2, UNKNOWN = -1;

class Source {
  constructor(files) {
    this.files = files;
    this.box = byId("source-box");
    byId("file").addEventListener("change", (event) => this.show(Number(event.target.value)));
    byId("next-not-run").addEventListener("click", () => this.next((it) => it === 0, "line that did not run"));
    byId("next-unknown").addEventListener("click", () => this.next((it) => it === UNKNOWN, "unknown line"));
    this.show(0);
  }

  show(number) {
    const file = this.file = this.files[number], body = document.createElement("tbody");
    this.line = -1;
    file.times.forEach((times, line) => {
      if (times === NO_CODE && !file.text) return;
      const row = body.insertRow(), head = document.createElement("th");
      head.scope = "row";
      head.textContent = line + 1;
      row.append(head);
      const count = row.insertCell(), code = row.insertCell();
      if (times > 0) [count.textContent, count.className] = [`${numberText(times)}×`, "ran"];
      else if (times === 0) [count.textContent, count.className] = ["✗ not run", "not-run"];
      else if (times === UNKNOWN) [count.textContent, count.className] = ["? unknown", "unknown"];
      code.textContent = file.text ? file.text[line] : "";
      row.id = `line-${line}`;
    });
    const table = document.createElement("table");
    table.setAttribute("aria-label", file.path);
    table.append(body);
    const note = document.createElement("p");
    note.className = "help";
    note.textContent = "  The text of this file was not found, or the page would become too large: lines with code alone.";
    this.box.replaceChildren(...(file.text ? [table] : [note, table]));
    this.box.scrollTop = 0;
  }

  next(wanted, what) {
    const times = this.file.times, from = this.line + 1;
    let found = times.findIndex((it, line) => line >= from && wanted(it));
    if (found < 0) found = times.findIndex(wanted);
    const old = this.box.querySelector(".here");
    if (old) old.classList.remove("here");
    if (found < 0) {
      byId("source-live").textContent = `There is no ${what} in this file.`;
      return;
    }
    this.line = found;
    const row = byId(`line-${found}`);
    row.classList.add("here");
    this.box.scrollTop = row.offsetTop - this.box.clientHeight / 3;
    byId("source-live").textContent = `Line ${found + 1}: ${row.lastElementChild.textContent.trim()}`;
  }
}

const source = report.sources.length ? new Source(report.sources) : null;
