// The listeners registered for every backward of a thread.
#pragma once

#include <brigade/autograd/listener.h>

#include <memory>
#include <vector>

namespace brigade::autograd::detail {

// The calling thread's listeners, in the order in which they were added; the result keeps them alive.
std::vector<std::shared_ptr<Listener>> registered_listeners();

}  // namespace brigade::autograd::detail
