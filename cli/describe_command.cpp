// cpfit completion and cpfit manual: what packages install beside the program, made from the commands themselves.
#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/describe/completion.h"
#include "cli/describe/man_page.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "model/quantity/text_file.h"

namespace cpfit::cli {

namespace {

int print_completion(const CLI::App& app, const std::string& shell) {
  const std::optional<Shell> known = parse_shell(shell);
  if (!known) {
    fmt::print(stderr, "cpfit completion: no shell '{}'\n       it is one of bash, zsh, fish\n", shell);
    return kBadInput;
  }
  fmt::print("{}", completion(describe(app), *known));
  return kDone;
}

struct ManualArguments {
  std::string program, help;
};

int print_manual(const CLI::App& app, const ManualArguments& arguments) {
  if (arguments.program.empty()) {
    fmt::print("{}", man_page(describe(app), kVersion));
    return kDone;
  }
  const Outcome<std::string> help = read_text_file(arguments.help, kMostWrittenBytes, "manual.help");
  if (!help.ok()) {
    print_problems(help.problems());
    return kBadInput;
  }
  fmt::print("{}", man_page_of_help(arguments.program, *help, kVersion));
  return kDone;
}

}  // namespace

void add_describe(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Completion of cpfit's command line, as a script of bash, zsh or fish");
  completion->add_option("shell", *shell, "The shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer("bash: cpfit completion bash > ~/.local/share/bash-completion/completions/cpfit");
  completion->callback([&app, shell, &exit_code] { exit_code = print_completion(app, *shell); });

  auto arguments = std::make_shared<ManualArguments>();
  CLI::App* manual = app.add_subcommand("manual", "This manual as a page for man: cpfit manual > cpfit.1");
  CLI::Option* program =
      manual->add_option("--program", arguments->program, "Of a sister program instead, from the text of its --help");
  manual->add_option("--help-text", arguments->help, "File with that text")->needs(program)->check(file_name());
  program->needs(manual->get_option("--help-text"));
  manual->callback([&app, arguments, &exit_code] { exit_code = print_manual(app, *arguments); });
}

}  // namespace cpfit::cli
