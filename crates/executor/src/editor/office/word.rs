//! Text documents (`.docx`).

use super::{
    ConvertError, Parts, TEXT_BYTES_MAX, table,
    xml::{Step, Tag, Walk},
};

pub(super) fn markdown(parts: &mut Parts) -> Result<String, ConvertError> {
    let xml = parts.text("word/document.xml")?;
    let mut page = Page::default();
    for step in Walk::over(&xml) {
        match step {
            Step::Open(tag) => page.open(&tag),
            Step::Close(name) => page.close(name),
            Step::Text(text) if page.in_text => page.paragraph.push_str(&text),
            Step::Text(_) => {}
        }
        if page.bytes > TEXT_BYTES_MAX {
            break;
        }
    }
    Ok(page.blocks.join("\n\n"))
}

#[derive(Default)]
struct Page {
    blocks: Vec<String>,
    bytes: usize,
    paragraph: String,
    /// What makes the paragraph a heading or an item of a list.
    mark: String,
    in_text: bool,
    /// Tables can stand in tables; the inner ones become text of a cell.
    table_depth: usize,
    rows: Vec<Vec<String>>,
}

impl Page {
    fn open(&mut self, tag: &Tag<'_>) {
        match tag.name {
            "t" => self.in_text = true,
            "tab" => self.paragraph.push('\t'),
            "br" | "cr" => self.paragraph.push('\n'),
            "pStyle" => {
                let style = tag.attribute("val").unwrap_or_default();
                self.mark = heading(&style).unwrap_or_default();
            }
            "numPr" if self.mark.is_empty() => self.mark = "* ".to_owned(),
            "tbl" => self.table_depth += 1,
            "tr" if self.table_depth == 1 => self.rows.push(Vec::new()),
            "tc" if self.table_depth == 1 => {
                if let Some(row) = self.rows.last_mut() {
                    row.push(String::new());
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "p" => self.end_paragraph(),
            "tbl" => {
                self.table_depth = self.table_depth.saturating_sub(1);
                if self.table_depth == 0 {
                    let rows = std::mem::take(&mut self.rows);
                    self.push(table(&rows));
                }
            }
            _ => {}
        }
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.paragraph);
        let mark = std::mem::take(&mut self.mark);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        match self.rows.last_mut().and_then(|row| row.last_mut()) {
            Some(cell) if self.table_depth > 0 => {
                self.bytes += text.len();
                if !cell.is_empty() {
                    cell.push(' ');
                }
                cell.push_str(text);
            }
            _ => self.push(format!("{mark}{text}")),
        }
    }

    fn push(&mut self, block: String) {
        self.bytes += block.len();
        self.blocks.push(block);
    }
}

fn heading(style: &str) -> Option<String> {
    if style == "Title" {
        return Some("# ".to_owned());
    }
    let level: usize = style.strip_prefix("Heading")?.parse().ok()?;
    (1..=6)
        .contains(&level)
        .then(|| format!("{} ", "#".repeat(level)))
}
