//! What is good and what is wrong in XML.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 16] = [
    "<a/>",
    "<a></a>",
    "<?xml version='1.1' encoding=\"UTF-8\" standalone=\"no\" ?><a/>",
    "<?xml version=\"1.0\"?>\n<a b=\"c\"/>\n",
    "<a><!-- c --><b>x</b></a>",
    "<a>&lt;&#65;&#x41;&amp;</a>",
    "<a><![CDATA[<&>]]></a>",
    "<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>",
    "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0//EN\" \"x.dtd\"><html>&nbsp;</html>",
    "<x:a xmlns:x=\"u\" x:b=\"1\" b=\"2\"/>",
    "<?pi x?><a/><!-- end -->",
    "<a b='\"'/>",
    "\u{feff}<a/>",
    "<a\r\n b=\"1\"\r\n/>",
    "<é>x</é>",
    "<!DOCTYPE a [<!ELEMENT a (#PCDATA)><!ATTLIST a b CDATA #IMPLIED>]><a/>",
];

#[rustfmt::skip]
const BAD: [Bad; 34] = [
    ("", 1, 1, "has no element"),
    ("<a>", 1, 4, "the text ends, but the element `<a>` of line 1, column 1 is not closed"),
    ("<a><b></a>", 1, 7, "`<b>` of line 1, column 4 is closed by `</a>`"),
    ("<a></b>", 1, 4, "`<a>` of line 1, column 1 is closed by `</b>`"),
    ("<a", 1, 1, "the tag `<a` is not closed"),
    ("<a b/>", 1, 5, "the attribute `b` has no value"),
    ("<a b=c/>", 1, 6, "the value of `b` is not in quotes"),
    ("<a b=\"1\" b=\"2\"/>", 1, 10, "the attribute `b` stands twice"),
    ("<a>&nbsp;</a>", 1, 4, "the entity `&nbsp;` is not defined"),
    ("<a>a & b</a>", 1, 6, "`&` begins a reference that does not end in `;`"),
    ("<a>a < b</a>", 1, 7, "a name is needed here, not ` `"),
    ("<a b=\"<\"/>", 1, 7, "`<` stands in the value of `b`"),
    ("<a/><b/>", 1, 5, "a second element stands behind the first"),
    ("text", 1, 1, "`t` stands outside of the root element"),
    ("<a/>text", 1, 5, "`t` stands outside of the root element"),
    ("<!-- a -- b --><a/>", 1, 8, "`--` stands in a comment"),
    ("<!-- a", 1, 7, "the text ends, but the comment of line 1, column 1 is not closed"),
    ("<a><![CDATA[x</a>", 1, 18, "the text ends, but `<![CDATA[` of line 1, column 4 is not closed"),
    ("\n<?xml version=\"1.0\"?><a/>", 2, 1, "the XML declaration does not stand at the beginning"),
    ("<a b=\"x/>", 1, 10, "the text ends, but the quote of line 1, column 6 is not closed"),
    ("<a b=\"1\"c=\"2\"/>", 1, 9, "`c` stands in a tag"),
    ("<1a/>", 1, 2, "a name is needed here, not `1`"),
    ("<a>\u{1}</a>", 1, 4, "a control character (0x01) stands here, and XML has none"),
    ("<a>&#0;</a>", 1, 4, "`&#0;` is no character of XML"),
    ("<a>]]></a>", 1, 4, "`]]>` stands in a text"),
    ("<?xml version=\"1.0\"><a/>", 1, 25, "the text ends, but `<?xml` of line 1, column 1 is not closed"),
    ("<!DOCTYPE a [<!ENTITY e \"x\"><a/>", 1, 29, "`<` stands in the document type"),
    ("<a><b></b>", 1, 11, "the text ends, but the element `<a>` of line 1, column 1 is not closed"),
    ("</a>", 1, 1, "an element is closed that was not opened"),
    ("<a>&lt</a>", 1, 4, "`&` begins a reference that does not end in `;`"),
    ("<?pi x", 1, 7, "the text ends, but the instruction of line 1, column 1 is not closed"),
    ("<?xml version=\"2\"?><a/>", 1, 1, "the XML declaration cannot be read"),
    ("<?xml encoding=\"UTF-8\"?><a/>", 1, 1, "the XML declaration cannot be read"),
    ("<?xml version=\"1.0\"encoding=\"x\"?><a/>", 1, 1, "the XML declaration cannot be read"),
];

#[test]
fn good_texts_pass() {
    good(Format::Xml, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Xml, &BAD);
}
