"use strict";
// Sort a table by a click on a heading, and search it. Without this script the tables stand as they are.

function figure(cell) {
  const number = parseFloat(cell.textContent.replace(/,/g, "").replace("−", "-"));
  return Number.isNaN(number) ? cell.textContent : number;
}

function sortBy(table, column, heading) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => [figure(row.cells[column]), row]);
  rows.sort(([a], [b]) => {
    const order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
    return down ? -order : order;
  });
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    if (heading.classList.contains("chart")) return;
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.append(button);
  });
}

for (const table of document.querySelectorAll("table.searchable")) {
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search values";
  search.setAttribute("aria-label", "Search values");
  search.addEventListener("input", () => {
    const sought = search.value.toLowerCase();
    for (const row of table.tBodies[0].rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(sought);
    }
  });
  table.parentNode.before(search);
}

// A list chooses one of the articles of a choice.
for (const choice of document.querySelectorAll(".choice")) {
  const articles = Array.from(choice.children);
  const list = document.createElement("select");
  const label = document.createElement("label");
  label.append(`${choice.dataset.label}: `, list);
  list.append(...articles.map((article) => new Option(article.querySelector("h3").firstChild.textContent.trim())));
  const show = () => articles.forEach((article, number) => (article.hidden = number !== list.selectedIndex));
  list.addEventListener("change", () => {
    show();
    articles[list.selectedIndex].querySelector("details").open = true;
  });
  choice.before(label);
  show();
}

// A link to a window opens it.
function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target && target.closest("details");
  if (details) details.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();
