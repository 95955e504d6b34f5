"use strict";
// The table of calls: sorted by its buttons, filtered by names.

const callsTable = byId("calls-table");

function valueOf(row, column) {
  const text = row.cells[column].textContent;
  return column ? Number(text.replace(/[,~]/g, "")) : text;
}

function sortBy(head, column) {
  const body = callsTable.tBodies[0], falls = column ? head.ariaSort !== "descending" : head.ariaSort === "ascending";
  const rows = [...body.rows].map((row) => [valueOf(row, column), row]);
  const order = (one, other) => (one < other ? -1 : Number(one > other));
  rows.sort((one, other) => (falls ? order(other[0], one[0]) : order(one[0], other[0])));
  for (const it of callsTable.tHead.rows[0].cells) it.ariaSort = "none";
  head.ariaSort = falls ? "descending" : "ascending";
  body.replaceChildren(...rows.map((it) => it[1]));
}

[...callsTable.tHead.rows[0].cells].forEach((head, column) => {
  head.firstElementChild.addEventListener("click", () => sortBy(head, column));
});
byId("calls-filter").addEventListener("input", (event) => {
  const wanted = event.target.value.trim().toLowerCase();
  let shown = 0;
  for (const row of callsTable.tBodies[0].rows) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    shown += !row.hidden;
  }
  byId("calls-shown").textContent = wanted ? countText(shown, "function") : "";
});
