// Those who asked to hear every backward of a thread.
#pragma once

#include <brigade/autograd/listener.h>

#include <memory>
#include <vector>

namespace brigade::autograd::detail {

// Of the calling thread, in the order in which they were added; kept alive by the result.
std::vector<std::shared_ptr<Listener>> registered_listeners();

}  // namespace brigade::autograd::detail
