// Shows the description of the server's APIs. All text is set as text, never as markup.

function make(name, content, attributes = {}) {
  const element = document.createElement(name);
  for (const part of [content].flat()) {
    if (part !== undefined && part !== null) element.append(part);
  }
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function nameOf(schema) {
  if (!schema) return "";
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return make("a", name, { href: `#${name}` });
  }
  if (schema.type === "array") return make("span", ["list of ", nameOf(schema.items)]);
  if (schema.anyOf) {
    const parts = schema.anyOf.flatMap((each, place) => (place ? [" or ", nameOf(each)] : [nameOf(each)]));
    return make("span", parts);
  }
  if (schema.enum) return schema.enum.join(", ");
  return schema.type ?? "";
}

function fields(schema) {
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties ?? {}).map(([name, each]) =>
    make("tr", [
      make("td", make("code", name)),
      make("td", nameOf(each)),
      make("td", [each.description ?? "", required.has(name) ? "" : make("span", " May be absent.", { class: "quiet" })]),
    ]),
  );
  const head = make("tr", [make("th", "Field"), make("th", "Type"), make("th", "What it is")]);
  return rows.length ? make("table", [make("thead", head), make("tbody", rows)]) : "";
}

function shown(schema) {
  return schema.properties ? fields(schema) : make("p", nameOf(schema));
}

function operation(method, path, said) {
  const inside = [];
  for (const each of said.parameters ?? []) {
    inside.push(make("p", ["Parameter ", make("code", each.name), ` in the ${each.in}: `, nameOf(each.schema)]));
  }
  if (said.requestBody) {
    const kinds = Object.entries(said.requestBody.content);
    inside.push(make("h3", "Request"), make("p", kinds.map(([kind]) => kind).join(" or "), { class: "quiet" }));
    inside.push(shown(kinds[0][1].schema));
    if (kinds[0][1].example) inside.push(make("pre", JSON.stringify(kinds[0][1].example, null, 2)));
  }
  inside.push(make("h3", "Responses"));
  const rows = Object.entries(said.responses).map(([status, each]) => {
    const [kind, content] = Object.entries(each.content ?? {})[0] ?? ["", {}];
    return make("tr", [make("td", status), make("td", nameOf(content.schema)), make("td", [each.description, " ", make("span", kind, { class: "quiet" })])]);
  });
  inside.push(make("table", make("tbody", rows)));
  const title = make("summary", [make("span", method.toUpperCase(), { class: "method" }), make("code", path), ` ${said.summary}`]);
  return make("details", [title, make("div", inside, { class: "inside" })]);
}

function everything(said) {
  const parts = said.tags.flatMap((tag) => {
    const mine = Object.entries(said.paths).flatMap(([path, operations]) =>
      Object.entries(operations)
        .filter(([, each]) => each.tags.includes(tag.name))
        .map(([method, each]) => operation(method, path, each)),
    );
    return [make("h2", tag.name), make("p", tag.description), ...mine];
  });
  parts.push(make("h2", "Messages"));
  for (const [name, schema] of Object.entries(said.components.schemas)) {
    parts.push(make("h3", name, { id: name }));
    if (schema.description) parts.push(make("p", schema.description));
    parts.push(shown(schema));
  }
  return parts;
}

const main = document.getElementById("operations");
try {
  const response = await fetch("/openapi.json");
  if (!response.ok) throw new Error(`status ${response.status}`);
  main.replaceChildren(...everything(await response.json()));
} catch (error) {
  main.replaceChildren(make("p", `The description can't be loaded: ${error.message}.`, { role: "alert" }));
}
main.removeAttribute("aria-busy");
