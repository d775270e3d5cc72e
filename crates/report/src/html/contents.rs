//! Links to the sections of a page.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};

const OPEN: &str = "<h2>";
const CLOSE: &str = "</h2>";

/// A page's sections with an anchor on each heading, after a list of links to them. Headings
/// are taken from the page, so that none can be missing in the list.
pub fn with_contents(body: &Markup) -> Markup {
    let mut anchored = String::new();
    let mut links: Vec<(String, &str)> = Vec::new();
    let mut known = BTreeSet::new();
    let mut rest = body.0.as_str();
    while let Some((before, after)) = rest.split_once(OPEN) {
        let Some((title, tail)) = after.split_once(CLOSE) else { break };
        let mut id = slug(title);
        while !known.insert(id.clone()) {
            id.push_str("-again");
        }
        anchored.push_str(&format!("{before}<h2 id=\"{id}\">{title}{CLOSE}"));
        links.push((id, title));
        rest = tail;
    }
    anchored.push_str(rest);
    html! {
        @if links.len() > 1 {
            nav aria-label="contents" { ul {
                @for (id, title) in &links { li { a href=(format!("#{id}")) { (PreEscaped(title)) } } }
            } }
        }
        (PreEscaped(anchored))
    }
}

/// `what-differs`: letters and digits of a title.
fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    format!("s-{}", words.collect::<Vec<_>>().join("-").to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heading_is_linked_once() {
        let body = html! { h2 { "What & why" } p { "x" } h2 { "Figures" } h2 { "Figures" } };
        let page = with_contents(&body).into_string();
        for (id, title) in [
            ("s-what-amp-why", "What &amp; why"),
            ("s-figures", "Figures"),
            ("s-figures-again", "Figures"),
        ] {
            assert!(page.contains(&format!("<a href=\"#{id}\">{title}</a>")), "{page}");
            assert!(page.contains(&format!("<h2 id=\"{id}\">{title}</h2>")), "{page}");
        }
        assert!(page.contains("<p>x</p>"));
    }
}
