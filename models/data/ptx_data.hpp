// The rows of data.ptx, which the actor is trained on beside its responses: how
// they are read, and which of them each step has. As those of data.train a pure
// function of seed and step, so a resumed run goes on with the same ones (I8).
#pragma once

#include "models/data/data_order.hpp"
#include "models/data/dataset.hpp"

namespace troupe::models {

/// Returns the options of data.ptx: rows as for sft, as long as a prompt with
/// its response (as DeepSpeed-Chat cuts its texts).
DatasetOptions ptx_options(const Settings& settings);

/// Opens data.ptx. Throws ConfigError as Dataset::open does.
Dataset open_ptx(const Settings& settings, const Tokenizer& tokenizer,
                 const DatasetOpening& opening = {});

/// Returns the order of data.ptx with `num_rows` usable rows.
DataOrder ptx_order(const Settings& settings, std::uint32_t num_rows);

} // namespace troupe::models
