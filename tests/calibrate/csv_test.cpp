#include "calibrate/read/csv.h"

#include <gtest/gtest.h>

namespace cpfit {
namespace {

CsvTable table_of(const std::string& text) {
  auto table = CsvTable::parse(text, "t.csv");
  EXPECT_TRUE(table.ok()) << (table.ok() ? "" : to_text(table.problems()[0]));
  return std::move(table).value();
}

std::string code_of(const std::string& text) {
  const auto table = CsvTable::parse(text, "t.csv");
  return table.ok() ? "" : table.problems()[0].code;
}

TEST(Csv, ReadsQuotedCommasQuotesAndLineBreaks) {
  const CsvTable table = table_of("name,note\na,\"x, \"\"y\"\"\nz\"\r\nb,plain\n");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table.row(0).text("note"), "x, \"y\"\nz");
  EXPECT_EQ(table.row(0).line(), 2);
  EXPECT_EQ(table.row(1).line(), 4);  // the quoted cell of the first record holds one line break
  EXPECT_EQ(table.row(1).text("name"), "b");
}

TEST(Csv, BlankAndMissingCellsAreNotNumbers) {
  const CsvTable table = table_of("a,b,c\n 1.5e3 ,,12x\n");
  const CsvRow row = table.row(0);
  EXPECT_EQ(row.number("a"), 1500.0);
  EXPECT_EQ(row.integer("a"), 1500);
  EXPECT_TRUE(row.blank("b"));
  EXPECT_FALSE(row.number("b").has_value());
  EXPECT_FALSE(row.number("c").has_value());
  EXPECT_FALSE(row.number("no such column").has_value());
}

TEST(Csv, FractionsAreNotIntegers) { EXPECT_FALSE(table_of("a\n2.5\n").row(0).integer("a").has_value()); }

TEST(Csv, LastLineNeedsNoLineBreakAndEmptyLinesAreSkipped) {
  const CsvTable table = table_of("a,b\n1,2\n\n3,");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table.row(1).line(), 4);
  EXPECT_TRUE(table.row(1).blank("b"));
}

TEST(Csv, SkipsAByteOrderMark) {
  EXPECT_TRUE(table_of("\xEF\xBB\xBF"
                       "a,b\n1,2\n")
                  .has("a"));
}

TEST(Csv, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(code_of(""), "csv.empty");
  EXPECT_EQ(code_of("a,a\n1,2\n"), "csv.duplicate_column");
  EXPECT_EQ(code_of("a,b\n\"1,2\n"), "csv.open_quote");
  EXPECT_EQ(code_of("a,b\n\"1\"x,2\n"), "csv.text_after_quote");
  const auto short_line = CsvTable::parse("a,b\n1,2\n3\n", "t.csv");
  ASSERT_FALSE(short_line.ok());
  EXPECT_EQ(short_line.problems()[0].code, "csv.cell_count");
  EXPECT_EQ(short_line.problems()[0].where, "t.csv:3");
  EXPECT_EQ(CsvTable::load("/no/such/file.csv").problems().at(0).code, "csv.unreadable");
}

}  // namespace
}  // namespace cpfit
