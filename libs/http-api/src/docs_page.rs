//! The page at `/docs`: the OpenAPI document as HTML, readable without scripts and without anything from elsewhere. Its only script adds buttons
//! that copy examples.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// What the page may load: its own inline style, its own inline script, by what that hashes to, and nothing else.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src \
     'sha256-6zl+6ZvkTTZqgw75A0JbSo4kbvXOti8TwkUYtM9LEK0='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = include_str!("docs_page.css");
const SCRIPT: &str = include_str!("docs_page.js");
const SCHEMAS: &str = "#/components/schemas/";

/// Renders an OpenAPI document.
pub fn render(document: &Value) -> String {
    let mut page = Page::default();
    let title = text(&document["info"]["title"]);
    page.raw("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
    page.text(title)
        .raw("</title><style>")
        .raw(STYLE)
        .raw("</style></head><body><main><h1>");
    page.text(title)
        .raw(" <small>")
        .text(text(&document["info"]["version"]))
        .raw("</small></h1>");
    page.prose(text(&document["info"]["description"]));
    page.raw("<p>The same for programs: <a href=\"/openapi.json\">/openapi.json</a></p>");
    security(&mut page, document);
    for (path, item) in entries(&document["paths"]) {
        for (method, operation) in entries(item) {
            self::operation(&mut page, path, method, operation);
        }
    }
    page.raw("<h2>Types</h2>");
    for (name, schema) in entries(&document["components"]["schemas"]) {
        self::schema(&mut page, name, schema);
    }
    page.raw("</main><script>")
        .raw(SCRIPT)
        .raw("</script></body></html>\n");
    page.html
}

fn security(page: &mut Page, document: &Value) {
    for (name, scheme) in entries(&document["components"]["securitySchemes"]) {
        page.raw("<h2>Authentication</h2><p><code>Authorization: Bearer …</code> (")
            .text(name)
            .raw(")</p>");
        page.prose(text(&scheme["description"]));
    }
}

fn operation(page: &mut Page, path: &str, method: &str, operation: &Value) {
    let id = text(&operation["operationId"]);
    page.raw("<section id=\"")
        .text(id)
        .raw("\"><h2><b>")
        .text(&method.to_uppercase());
    page.raw("</b> <code>")
        .text(path)
        .raw("</code></h2><p>")
        .text(text(&operation["summary"]))
        .raw("</p>");
    page.prose(text(&operation["description"]));
    let needs_key = operation["security"]
        .as_array()
        .is_some_and(|needs| !needs.is_empty());
    if needs_key {
        page.raw("<p class=\"note\">Needs an API key.</p>");
    }
    parameters(page, &operation["parameters"]);
    let body = &operation["requestBody"];
    if body.is_object() {
        page.raw("<h3>Body</h3>").prose(text(&body["description"]));
        content(page, &body["content"]);
    }
    page.raw("<h3>Answers</h3>");
    for (status, response) in entries(&operation["responses"]) {
        page.raw("<div class=\"answer\"><h4>").text(status).raw("</h4>");
        page.prose(text(&response["description"]));
        headers(page, &response["headers"]);
        content(page, &response["content"]);
        page.raw("</div>");
    }
    page.raw("</section>");
}

fn parameters(page: &mut Page, parameters: &Value) {
    let Some(parameters) = parameters.as_array().filter(|list| !list.is_empty()) else {
        return;
    };
    page.raw("<h3>Parameters</h3><table><tr><th>name<th>in<th>meaning<th>example</tr>");
    for parameter in parameters {
        page.raw("<tr><td><code>")
            .text(text(&parameter["name"]))
            .raw("</code><td>");
        page.text(text(&parameter["in"]))
            .raw("<td>")
            .text(text(&parameter["description"]));
        page.raw("<td><code>")
            .text(text(&parameter["example"]))
            .raw("</code></tr>");
    }
    page.raw("</table>");
}

fn headers(page: &mut Page, headers: &Value) {
    if entries(headers).next().is_none() {
        return;
    }
    page.raw("<table><tr><th>header<th>meaning</tr>");
    for (name, header) in entries(headers) {
        page.raw("<tr><td><code>").text(name).raw("</code><td>");
        page.text(text(&header["description"])).raw("</tr>");
    }
    page.raw("</table>");
}

fn content(page: &mut Page, content: &Value) {
    for (media_type, content) in entries(content) {
        page.raw("<p><code>").text(media_type).raw("</code> ");
        page.raw(&type_name(&content["schema"])).raw("</p>");
        if !content["example"].is_null() {
            example(page, &content["example"]);
        }
        for (_, named) in entries(&content["examples"]) {
            page.raw("<details><summary>")
                .text(text(&named["summary"]))
                .raw("</summary>");
            example(page, &named["value"]);
            page.raw("</details>");
        }
    }
}

fn example(page: &mut Page, value: &Value) {
    let shown = match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    };
    page.raw("<div class=\"example\"><pre>")
        .text(&shown)
        .raw("</pre></div>");
}

fn schema(page: &mut Page, name: &str, schema: &Value) {
    page.raw("<section id=\"type-")
        .text(name)
        .raw("\"><h3>")
        .text(name)
        .raw("</h3>");
    page.prose(text(&schema["description"]));
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<&str> = values.iter().map(text).collect();
        page.raw("<p>One of <code>")
            .text(&values.join("  "))
            .raw("</code></p>");
    }
    if entries(&schema["properties"]).next().is_some() {
        page.raw("<table><tr><th>field<th>type<th>meaning<th>example</tr>");
        for (field, property) in entries(&schema["properties"]) {
            self::property(page, schema, field, property);
        }
        page.raw("</table>");
    }
    page.raw("</section>");
}

fn property(page: &mut Page, schema: &Value, field: &str, property: &Value) {
    let required = schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|name| name == field));
    page.raw("<tr><td><code>").text(field).raw("</code>");
    page.raw(if required { "" } else { " <small>optional</small>" });
    page.raw("<td>")
        .raw(&type_name(property))
        .raw("<td>")
        .text(text(&property["description"]));
    page.raw("<td>");
    if !property["example"].is_null() {
        let example = &property["example"];
        let shown = example
            .as_str()
            .map_or_else(|| example.to_string(), str::to_owned);
        page.raw("<code>").text(&shown).raw("</code>");
    }
    page.raw("</tr>");
}

/// A schema's type in a word or two, as HTML: types of the document are links.
fn type_name(schema: &Value) -> String {
    if let Some(name) = schema["$ref"]
        .as_str()
        .and_then(|reference| reference.strip_prefix(SCHEMAS))
    {
        let name = escape(name);
        return format!("<a href=\"#type-{name}\">{name}</a>");
    }
    if let Some(options) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
        return options.iter().map(type_name).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(types) => types
            .iter()
            .map(|name| escape(text(name)))
            .collect::<Vec<_>>()
            .join(" or "),
        Value::String(name) if name == "array" => format!("list of {}", type_name(&schema["items"])),
        Value::String(name) => match schema["format"].as_str() {
            Some(format) => format!("{} ({})", escape(name), escape(format)),
            None => escape(name),
        },
        _ => "any".to_owned(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// HTML under construction. What comes from the document goes through [`Page::text`], which escapes it.
#[derive(Default)]
struct Page {
    html: String,
}

impl Page {
    fn raw(&mut self, html: &str) -> &mut Self {
        self.html.push_str(html);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.html.push_str(&escape(text));
        self
    }

    /// Paragraphs that are separated by empty lines.
    fn prose(&mut self, text: &str) -> &mut Self {
        for paragraph in text
            .split("\n\n")
            .filter(|paragraph| !paragraph.trim().is_empty())
        {
            let _ = write!(self.html, "<p>{}</p>", escape(paragraph));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use domain::key::KeyDigest;
    use serde_json::json;

    use super::*;

    /// The digest of a key is that of any text.
    #[test]
    fn browsers_run_the_script_of_the_page_and_no_other() {
        let hash = BASE64_STANDARD.encode(KeyDigest::of(SCRIPT).as_bytes());
        let allowed = format!("script-src 'sha256-{hash}';");
        assert!(
            CONTENT_SECURITY_POLICY.contains(&allowed),
            "it should say {allowed}"
        );
        let page = render(&json!({"info": {"title": "An API"}}));
        assert!(page.contains(&format!("<script>{SCRIPT}</script>")), "{page}");
        assert_eq!(page.matches("<script").count(), 1);
    }

    #[test]
    fn what_comes_from_the_document_cannot_become_markup() {
        let page = render(&json!({
            "info": {"title": "<script>alert(1)</script>", "description": "a & b\n\n\"c\""},
            "paths": {"/x": {"get": {"summary": "<i>", "responses": {"200": {"description": "<b onclick='x'>"}}}}},
        }));
        assert!(
            !page.contains("<script>alert") && !page.contains("<i>") && !page.contains("<b onclick"),
            "{page}"
        );
        assert!(page.contains("<p>a &amp; b</p><p>&quot;c&quot;</p>"), "{page}");
    }
}
