// What is chosen anywhere, shown everywhere. No view keeps its own copy; a change carries its origin so that nobody echoes.
#pragma once

#include <QObject>
#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

namespace cpfit::gui {

struct SelectedLink {
  QString from, to;  // vertices of the topology
  friend bool operator==(const SelectedLink&, const SelectedLink&) = default;
};

/// A span of the simulated step: its identity, good across zooms and runs of the same program.
struct SelectedSpan {
  std::int32_t lane = -1;
  std::int32_t activity = -1, copy = 0;
  friend bool operator==(const SelectedSpan&, const SelectedSpan&) = default;
};

/// Picoseconds from the beginning of the step.
struct FocusRange {
  std::int64_t from = 0, to = 0;
  friend bool operator==(const FocusRange&, const FocusRange&) = default;
};

struct SelectedTensor {
  std::int32_t stage = 0;
  QString component, tensor;  // tensor empty: the whole component
  friend bool operator==(const SelectedTensor&, const SelectedTensor&) = default;
};

struct Selected {
  std::optional<SelectedLink> link;
  std::optional<SelectedSpan> span;
  std::optional<FocusRange> focus;
  std::optional<SelectedTensor> tensor;
  std::optional<std::int64_t> run_a, run_b;  // candidates or stored runs, as the results view numbers them
  std::vector<std::int64_t> ranks;
  QString parameter;  // key of the recipe row
  friend bool operator==(const Selected&, const Selected&) = default;
};

class Selection : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;
  [[nodiscard]] const Selected& now() const { return now_; }

  /// One change of any fields; nothing is emitted when all stay.
  void set(const Selected& selected, const QObject* origin);

  template <class Change>
  void change(const QObject* origin, Change edit) {
    Selected next = now_;
    edit(next);
    set(next, origin);
  }
  /// Esc: first the focus range, then what is selected. False when nothing was.
  bool clear_step(const QObject* origin);

 signals:
  void changed(const cpfit::gui::Selected& before, const QObject* origin);

 private:
  Selected now_;
};

}  // namespace cpfit::gui
