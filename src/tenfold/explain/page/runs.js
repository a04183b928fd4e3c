// What ran where, and why functions were recorded anew: tables in the place of panes.

const FEW_GUARDS = 6;

class RunsPage {
  constructor({ title, runs }) {
    at("title").textContent = title;
    document.body.className = "runs-page";
    for (const each of document.querySelectorAll("nav, .search, #memory, #help")) each.remove();
    Page.prototype.theme.call(this);
    const again = runs.functions.filter((each) => each.recompiled.length).length;
    Page.prototype.factsOf.call(this, [
      ["compiled functions", count(runs.functions.length)],
      ["recompiled", count(again)],
      ["programs compiled for them", count(total(runs.functions.map((each) => each.programs)))],
      ["other programs", count(runs.programs.length)],
      ["runs of those", count(total(runs.programs.map((each) => each.times)))],
    ]);
    const root = document.createElement("div");
    root.className = "runs";
    root.append(
      heading("Compiled functions: XLA runs their programs"),
      runs.functions.length
        ? table(["function", "programs", "why it was recorded again", "what is guarded"], runs.functions.map((each) => [
          [each.name, each.place], each.programs, { reasons: each.recompiled }, { code: each.guards },
        ]))
        : paragraph("No function of tenfold.compile was called."),
      heading("Other programs, and the tier that each ran on"),
      runs.programs.length
        ? table(["times", "tier", "program", "why there"], runs.programs.map((each) => [
          each.times, { tier: each.tier }, [each.program, each.place], each.reason,
        ]))
        : paragraph("There was none."),
    );
    at("views").replaceChildren(root);
    at("detail").textContent = "numpy: run at once on tier 0. background: run on tier 0 while XLA compiles it. xla: compiled before it runs."
      + " Later runs by XLA, of what was compiled by then, are not counted.";
  }
}

function heading(text) {
  const made = document.createElement("h2");
  made.textContent = text;
  return made;
}

function paragraph(text) {
  const made = document.createElement("p");
  made.textContent = text;
  return made;
}

function table(titles, rows) {
  const made = document.createElement("table"), head = made.createTHead().insertRow(), body = made.createTBody();
  titles.forEach((title, i) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (typeof rows[0]?.[i] === "number") cell.className = "num";
    cell.textContent = title;
    head.append(cell);
  });
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, i) => {
      const cell = line.insertCell();
      cell.dataset.title = titles[i];  // which a phone shows in the place of the head
      fill(cell, value);
    });
  }
  return made;
}

// A listing that starts out closed where it is long: the tables below it are to be seen.
function folded(text) {
  const code = document.createElement("pre"), lines = text.split("\n").length;
  code.textContent = text;
  if (lines <= FEW_GUARDS) return code;
  const fold = document.createElement("details"), head = document.createElement("summary");
  head.textContent = `${count(lines)} lines`;
  fold.append(head, code);
  return fold;
}

function fill(cell, value) {
  if (Array.isArray(value)) {
    const [text, place] = value, small = document.createElement("small");
    small.textContent = place;
    cell.append(text, document.createElement("br"), small);
  } else if (value.reasons) {
    const list = document.createElement("ol");
    for (const reason of value.reasons) list.append(Object.assign(document.createElement("li"), { textContent: reason }));
    cell.append(value.reasons.length > 1 ? list : value.reasons[0] ?? "it was not");
  } else if (value.code !== undefined) {
    cell.append(folded(value.code));
  } else if (value.tier !== undefined) {
    const tier = document.createElement("span");
    tier.className = "tier";
    tier.textContent = value.tier;
    cell.append(tier);
  } else {
    if (typeof value === "number") cell.className = "num";
    cell.textContent = typeof value === "number" ? count(value) : value;
  }
}
