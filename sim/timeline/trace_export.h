// A timeline as a trace for Perfetto and chrome://tracing (JSON), and its spans as CSV. Written as a stream.
//
// One process per rank, one thread per lane (a lane's slices never overlap, and Perfetto drops slices that do), an arrow from
// each message's sending slice to its receiving one, counters as given. Thread numbers are unique over all processes.
//
// Times are microseconds with all picoseconds, and half a picosecond is added to every `ts`: readers that cut to nanoseconds
// after a multiplication in floating point would now and then put a slice's end behind the next one's beginning; with the half
// they cannot, because the cut ts and dur of one slice then never add up to more than the cut ts of the next.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "model/record/lane.h"
#include "sim/timeline/counter_track.h"

namespace cpfit::timeline {

/// Where a rank of the program sits.
struct RankPlace {
  std::int32_t node = 0, rank = 0, stage = 0;
};

/// Where a step begins in a timeline of several.
struct StepMark {
  std::string name;
  Picoseconds time = 0;
};

/// `places`: by rank of the timeline; ranks beyond it are named by their index alone. Args of a slice, where they apply: pass,
/// layer, micro_batch, chunk, bytes, peer, posted_us, exposed_us, activity, copy. Messages below 3 ns have no arrow. `steps`
/// become instants over all tracks. Throws Error when `out` fails.
void write_trace(std::ostream& out, const Timeline& timeline, const std::vector<RankPlace>& places,
                 const std::vector<CounterTrack>& counters, const std::vector<StepMark>& steps = {});

/// rank,node,stage,lane,name,kind,pass,layer,micro_batch,chunk,start_ps,end_ps,posted_ps,exposed_ps,bytes,peer,activity,copy;
/// a header line, then a line per span, lane by lane; empty where it does not apply. Throws Error when `out` fails.
void write_span_csv(std::ostream& out, const Timeline& timeline, const std::vector<RankPlace>& places);

}  // namespace cpfit::timeline
