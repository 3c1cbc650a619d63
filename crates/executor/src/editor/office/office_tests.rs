//! Small documents, made here, and what is read out of them.

use std::io::Write;

use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;
use crate::files::fixture::Fixture;

fn document(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        archive
            .start_file(*name, SimpleFileOptions::default())
            .unwrap();
        archive.write_all(content.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn a_text_document_keeps_headings_lists_and_tables() {
    let body = "<w:document><w:body>\
        <w:p><w:pPr><w:pStyle w:val=\"Heading2\"/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>\
        <w:p><w:r><w:t>One </w:t></w:r><w:r><w:t>&amp; two</w:t></w:r></w:p><w:p/>\
        <w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>item</w:t></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b|c</w:t></w:r></w:p></w:tc></w:tr>\
        <w:tr><w:tc><w:p><w:r><w:t>1</w:t></w:r></w:p></w:tc></w:tr></w:tbl>\
        </w:body></w:document>";
    assert_eq!(
        Kind::Word.markdown(document(&[("word/document.xml", body)])),
        Ok("## Head\n\nOne & two\n\n* item\n\n| a | b\\|c |\n| --- | --- |\n| 1 |  |".to_owned())
    );
}

#[test]
fn a_spreadsheet_is_a_table_per_sheet() {
    let bytes = document(&[
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name=\"First\" r:id=\"rId1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"rId1\" Target=\"worksheets/sheet1.xml\"/></Relationships>",
        ),
        (
            "xl/sharedStrings.xml",
            "<sst><si><t>name</t></si><si><r><t>va</t></r><r><t>lue</t></r></si></sst>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            "<worksheet><sheetData><row><c r=\"A1\" t=\"s\"><v>0</v></c><c r=\"C1\" t=\"s\"><v>1</v></c></row>\
             <row><c r=\"A2\" t=\"inlineStr\"><is><t>x</t></is></c><c r=\"B2\"><v>1.5</v></c><c r=\"ZZZ2\"><v>9</v></c></row></sheetData></worksheet>",
        ),
    ]);
    assert_eq!(
        Kind::Spreadsheet.markdown(bytes),
        Ok("## First\n| name |  | value |\n| --- | --- | --- |\n| x | 1.5 |  |".to_owned())
    );
}

#[test]
fn slides_come_in_order_with_their_titles() {
    let slide = |title: &str, text: &str| {
        format!(
            "<p:sld><p:sp><p:nvPr><p:ph type=\"title\"/></p:nvPr><a:p><a:r><a:t>{title}</a:t></a:r></a:p></p:sp>\
             <p:sp><a:p><a:r><a:t>{text}</a:t></a:r></a:p><a:p/></p:sp></p:sld>"
        )
    };
    let (one, two, ten) = (slide("A", "a"), slide("B", "b"), slide("J", "j"));
    let bytes = document(&[
        ("ppt/slides/slide10.xml", &ten),
        ("ppt/slides/slide2.xml", &two),
        ("ppt/slides/slide1.xml", &one),
    ]);
    assert_eq!(
        Kind::Slides.markdown(bytes),
        Ok("<!-- Slide number: 1 -->\n# A\na\n\n<!-- Slide number: 2 -->\n# B\nb\n\n<!-- Slide number: 10 -->\n# J\nj"
            .to_owned())
    );
}

#[test]
fn what_is_no_document_is_an_error() {
    assert_eq!(
        Kind::Word.markdown(b"text".to_vec()),
        Err(ConvertError::NotAnArchive)
    );
    assert_eq!(
        Kind::Word.markdown(document(&[("other", "")])),
        Err(ConvertError::PartMissing {
            name: "word/document.xml".to_owned()
        })
    );
}

#[test]
fn a_part_that_unpacks_without_end_is_refused() {
    let bomb = " ".repeat(33 << 20);
    let bytes = document(&[("word/document.xml", &bomb)]);
    assert!(bytes.len() < 1 << 20);
    assert_eq!(
        Kind::Word.markdown(bytes),
        Err(ConvertError::PartTooLarge {
            name: "word/document.xml".to_owned()
        })
    );
}

#[test]
fn the_editor_shows_documents_and_says_what_it_cannot_show() {
    let fixture = Fixture::new();
    let body = "<w:p><w:t>Hello</w:t></w:p>";
    let path = fixture.put("d.docx", document(&[("word/document.xml", body)]));
    let expected =
        format!("Here's the content of the file {path} displayed in Markdown format:\nHello\n");
    assert_eq!(fixture.say("view", &path), expected);
    assert_eq!(fixture.view_range(&path, &[]), expected);
    let broken = fixture.put("b.docx", "text");
    assert_eq!(
        fixture.say("view", &broken),
        format!(
            "ERROR:\nError in converting file to Markdown: File is not a zip file. Please use Python code to read {broken}"
        )
    );
    let sound = fixture.put("s.mp3", "text");
    assert_eq!(
        fixture.say("view", &sound),
        format!(
            "ERROR:\nError in converting file to Markdown: there is no converter for .mp3 files here. Please use Python code to read {sound}"
        )
    );
}
