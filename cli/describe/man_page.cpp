#include "cli/describe/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace cpfit::cli {

namespace {

/// Plain text as roff: backslashes and hyphens are not its own, and a line that starts with a dot or an apostrophe is no request.
std::string plain(const std::string& text) {
  std::string escaped;
  bool line_starts = true;
  for (const char letter : text) {
    if (line_starts && (letter == '.' || letter == '\'')) escaped += "\\&";
    line_starts = letter == '\n';
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

std::string title(const std::string& program, const std::string& version) {
  return fmt::format(".TH {} 1 \"\" \"cpfit {}\" \"cpfit\"\n", upper(plain(program)), plain(version));
}

/// Lines of --help keep their breaks.
std::string paragraph(const std::string& text) {
  std::istringstream lines(text);
  std::string written, line;
  while (std::getline(lines, line)) written += (written.empty() ? "" : ".br\n") + (line.empty() ? "\\&" : plain(line)) + "\n";
  return written;
}

std::string synopsis(const CommandText& command) {
  std::string line = "\\fB" + plain(command.name()) + "\\fR";
  if (!command.options.empty()) line += " [\\fIOPTION\\fR]...";
  for (const OptionText& positional : command.positionals) {
    const std::string name = "\\fI" + upper(plain(positional.names.front())) + "\\fR";
    const std::string dots = positional.repeats ? "..." : "";
    line += " " + (positional.required ? name : "[" + name + "]") + dots;
  }
  if (!command.commands.empty()) line += command.needs_command ? " \\fICOMMAND\\fR" : " [\\fICOMMAND\\fR]";
  return line + "\n";
}

std::string tagged(const OptionText& option, bool positional) {
  std::string tag;
  for (const std::string& name : option.names)
    tag += (tag.empty() ? "\\fB" : ", \\fB") + plain(positional ? upper(name) : name) + "\\fR";
  if (!positional && !option.value.empty()) tag += " \\fI" + plain(option.value) + "\\fR";
  std::string what = option.description;
  if (!option.choices.empty()) {
    std::string list;
    for (const std::string& choice : option.choices) list += (list.empty() ? "" : ", ") + choice;
    what += fmt::format("{}One of: {}.", what.empty() ? "" : ". ", list);
  }
  if (!option.standard.empty()) what += fmt::format(" (default: {})", option.standard);
  if (option.required && !positional) what += " (required)";
  return ".TP\n" + tag + "\n" + (what.empty() ? std::string("\\&\n") : paragraph(what));
}

std::string arguments(const CommandText& command) {
  std::string text;
  for (const OptionText& positional : command.positionals) text += tagged(positional, true);
  for (const OptionText& option : command.options) text += tagged(option, false);
  return text;
}

}  // namespace

std::string man_page(const CommandText& program, const std::string& version) {
  const std::string name = program.name();
  std::string page = title(name, version);
  std::string summary = program.description;
  std::replace(summary.begin(), summary.end(), '\n', ' ');
  if (summary.starts_with(name + " ")) summary.erase(0, name.size() + 1);
  page += fmt::format(".SH NAME\n{} \\- {}\n", plain(name), plain(summary));
  page += ".SH SYNOPSIS\n" + synopsis(program);
  page += ".SH OPTIONS\n" + arguments(program);
  page += ".SH COMMANDS\n";
  for (const CommandText* command : all_commands(program)) {
    if (command == &program) continue;
    page += fmt::format(".SS {}\n{}", plain(command->name()), synopsis(*command));
    page += ".PP\n" + paragraph(command->description) + arguments(*command);
    if (!command->footer.empty()) page += ".PP\n" + paragraph(command->footer);
  }
  if (!program.footer.empty()) page += ".SH NOTES\n" + paragraph(program.footer);
  return page;
}

std::string man_page_of_help(const std::string& program, const std::string& help, const std::string& version) {
  // The first line of --help that is neither empty nor the usage says what the program is.
  std::istringstream lines(help);
  std::string summary, line;
  while (summary.empty() && std::getline(lines, line)) {
    if (!line.empty() && !line.starts_with("Usage")) summary = line;
  }
  return title(program, version) + fmt::format(".SH NAME\n{} \\- {}\n", plain(program), plain(summary)) +
         ".SH DESCRIPTION\n.nf\n" + plain(help) + ".fi\n.SH SEE ALSO\n\\fBcpfit\\fR(1)\n";
}

}  // namespace cpfit::cli
