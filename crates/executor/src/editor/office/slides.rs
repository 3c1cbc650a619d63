//! Presentations (`.pptx`).

use super::{
    ConvertError, Parts, TEXT_BYTES_MAX,
    xml::{Step, Walk},
};

pub(super) fn markdown(parts: &mut Parts) -> Result<String, ConvertError> {
    let mut numbers: Vec<u32> = parts
        .names()
        .filter_map(|name| slide_number(&name))
        .collect();
    numbers.sort_unstable();
    let mut out = String::new();
    for number in numbers {
        let xml = parts.text(&format!("ppt/slides/slide{number}.xml"))?;
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(&format!("<!-- Slide number: {number} -->\n{}", slide(&xml)));
        if out.len() > TEXT_BYTES_MAX {
            break;
        }
    }
    Ok(out)
}

fn slide_number(name: &str) -> Option<u32> {
    name.strip_prefix("ppt/slides/slide")?
        .strip_suffix(".xml")?
        .parse()
        .ok()
}

/// One line per paragraph; the title is a heading.
fn slide(xml: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let (mut in_text, mut in_title) = (false, false);
    for step in Walk::over(xml) {
        match step {
            Step::Open(tag) => match tag.name {
                "sp" => in_title = false,
                "ph" => {
                    let kind = tag.attribute("type").unwrap_or_default();
                    in_title = matches!(&*kind, "title" | "ctrTitle");
                }
                "t" => in_text = true,
                "br" => line.push(' '),
                _ => {}
            },
            Step::Close("t") => in_text = false,
            Step::Close("p") => {
                let text = std::mem::take(&mut line);
                if !text.trim().is_empty() {
                    lines.push(if in_title { format!("# {text}") } else { text });
                }
            }
            Step::Close(_) => {}
            Step::Text(text) if in_text => line.push_str(&text),
            Step::Text(_) => {}
        }
    }
    lines.join("\n")
}
