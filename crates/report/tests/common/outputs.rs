//! What holds for every output.

use punctual_report::figure::Figure;
use unicode_width::UnicodeWidthStr;

/// The widest line of a text fits, and none begins in the middle of a number.
pub fn check_width(text: &str, width: usize) {
    let widest = text.lines().max_by_key(|line| line.width()).unwrap_or("");
    assert!(widest.width() <= width, "{width}: {widest}");
    let torn = text.lines().find(|line| line.trim_start().starts_with(['%', ')']));
    assert_eq!(torn, None, "{width}");
}

/// A page without its style and its figures, of which there are so many; they have tests of
/// their own.
pub fn plain(page: &str, figures: usize) -> String {
    let mut plain = String::new();
    let mut rest = page;
    let figures = std::iter::repeat_n(("<svg", "</svg>"), figures);
    for (begin, end) in [("<style>", "</style>")].into_iter().chain(figures) {
        let (before, after) = rest.split_once(begin).unwrap();
        plain.push_str(before);
        rest = after.split_once(end).unwrap().1;
    }
    plain.push_str(rest);
    assert!(!plain.contains("<svg"), "more figures than that");
    plain.replace("><", ">\n<")
}

/// A page loads nothing, has so many figures and verdicts, a head for each column, no identifier
/// twice, and units as they are printed.
pub fn check_page(page: &str, figures: usize, verdicts: usize) {
    for forbidden in ["<script", "<link", "@import", "url(", "src=", "href=", "<th>"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page.matches("<svg").count(), figures);
    assert_eq!(page.matches("class=\"verdict\"").count(), verdicts);
    for id in page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id} is not unique");
    }
    assert!(!page.contains(" us<"));
}

/// The figures have names of their own, parse, need no style, and no two texts collide.
pub fn check_figures(what: &str, figures: &[Figure]) {
    let mut names: Vec<_> = figures.iter().map(|figure| &figure.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), figures.len(), "{what}");
    for figure in figures {
        let (name, svg) = (&figure.name, figure.svg());
        assert!(roxmltree::Document::parse(&svg).is_ok(), "{name}");
        for bad in ["NaN", "inf\"", "var(", "<style", "style=", "url("] {
            assert!(!svg.contains(bad), "{name}: {bad}");
        }
        super::check_texts(what, figure);
    }
}

/// Whether a character is none that a name may bring into an output.
pub fn is_foreign(c: char) -> bool {
    c != '\n' && (c.is_control() || c == '\u{202e}')
}

/// Texts, page and figures of what has foreign names: markup, controls, other directions.
pub fn check_foreign(texts: &[String], page: &str, figures: &[Figure]) {
    for text in texts {
        assert!(!text.contains(is_foreign), "{text:?}");
        assert!(text.contains("<script>"), "{text}");
    }
    assert!(!page.contains(is_foreign) && !page.contains("<script"), "{page}");
    assert!(page.contains("&lt;script&gt;"));
    for figure in figures {
        let svg = figure.svg();
        assert!(!svg.contains(is_foreign) && !svg.contains("<script"), "{svg}");
        assert!(figure.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    }
}
