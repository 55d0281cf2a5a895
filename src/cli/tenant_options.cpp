#include "tenant_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "rondo/core/error.hpp"
#include "rondo/core/nearest.hpp"
#include "rondo/core/numbers.hpp"
#include "rondo/core/tenants.hpp"
#include "rondo/core/units.hpp"
#include "rondo/io/json_files.hpp"
#include "rondo/io/read_as.hpp"
#include "shape_options.hpp"

namespace rondo::cli {
namespace {

constexpr const char* kForm =
    "NAME:collective=allgather,size=1GB[,group=0-7][,root=0][,priority=1][,start=0]";

[[noreturn]] void refuse_tenant(const std::string& text, const std::string& why) {
  throw Error(ExitCode::usage, fmt::format("--tenant is '{}', but {}; write {}", text, why, kForm));
}

/// One value of --tenant.
class TenantText {
 public:
  explicit TenantText(const std::string& text) : text_(text) {
    const std::size_t colon = text.find(':');
    name_ = text.substr(0, colon);
    const bool is_name = !name_.empty() && std::ranges::all_of(name_, [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    });
    if (!is_name || colon == std::string::npos)
      refuse_tenant(text, "a tenant begins with a name of letters, digits, '_', '-' and '.', and a ':'");
    // A list of GPUs has commas too: what has no '=' goes on with the value before.
    for (std::size_t at = colon + 1; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      const std::string word = text.substr(at, end - at);
      at = end + 1;
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos) {
        if (last_ != "group") refuse_tenant(text, fmt::format("'{}' is no KEY=VALUE", word));
        values_[last_] += "," + word;
        continue;
      }
      last_ = word.substr(0, equals);
      const std::vector<std::string> known{"collective", "size", "group", "root", "priority", "start"};
      if (std::ranges::find(known, last_) == known.end()) {
        refuse_tenant(text, fmt::format("'{}' is unknown{}", last_, did_you_mean(last_, known)));
      }
      if (!values_.emplace(last_, word.substr(equals + 1)).second)
        refuse_tenant(text, fmt::format("{} is given twice", last_));
    }
  }

  const std::string& name() const { return name_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  const std::string& value(const std::string& key) const {
    if (!has(key)) refuse_tenant(text_, key + " is missing");
    return values_.at(key);
  }
  double number(const std::string& key, double otherwise) const {
    return has(key) ? parse_number(value(key), fmt::format("{} of tenant '{}'", key, name_)) : otherwise;
  }
  [[noreturn]] void refuse(const std::string& why) const { refuse_tenant(text_, why); }

 private:
  std::string text_;
  std::string name_;
  std::map<std::string, std::string> values_;
  std::string last_;
};

Demand demand_of(const TenantText& tenant, std::size_t num_gpus) {
  const Collective collective = parse_collective(tenant.value("collective"));
  if (collective == Collective::custom)
    tenant.refuse("collective 'custom' needs a file; give --demand FILE besides");
  CollectiveShape shape;
  if (tenant.has("group")) shape.group = parse_group(tenant.value("group"), num_gpus);
  if (shape.group.size() == num_gpus) shape.group.clear();
  if (tenant.has("root") && !collective->has_root)
    tenant.refuse(fmt::format("{} has no root", to_string(collective)));
  GpuId root = collective->has_root && !shape.group.empty() ? shape.group.front() : GpuId{0};
  if (tenant.has("root")) {
    root = GpuId(
        static_cast<std::int32_t>(parse_whole(tenant.value("root"), "root of tenant '" + tenant.name() + "'",
                                              0, static_cast<std::int64_t>(num_gpus) - 1)));
  }
  return make_demand(collective, parse_size(tenant.value("size")), num_gpus, 1, root, shape);
}

/// Collects contributions under new tenant numbers.
class Tenants {
 public:
  void add(const std::string& name, std::vector<Contribution> own) {
    for (const auto& [number, other] : names_) {
      if (other == name) {
        throw Error(ExitCode::usage,
                    fmt::format("two tenants are named '{}'; give each a name of its own (of a file it is "
                                "the file's)",
                                name));
      }
    }
    const int number = static_cast<int>(names_.size());
    names_[number] = name;
    for (Contribution& c : own) {
      c.tenant = number;
      bytes_ += c.bytes;
      all_.push_back(std::move(c));
    }
  }
  SharedDemand take(std::size_t num_gpus) {
    return {Demand(Collective::custom, bytes_, num_gpus, std::move(all_), 1), std::move(names_)};
  }

 private:
  std::vector<Contribution> all_;
  std::map<int, std::string> names_;
  double bytes_ = 0;
};

void add_tenant(const std::string& text, std::size_t num_gpus, Tenants& tenants) {
  const TenantText tenant(text);
  const double priority = tenant.number("priority", 1);
  if (!(priority > 0)) tenant.refuse(fmt::format("priority is {}, which is not more than 0", priority));
  const double start_us = tenant.number("start", 0);
  if (!(start_us >= 0)) tenant.refuse(fmt::format("start is {} us, which is before 0", start_us));
  std::vector<Contribution> own = demand_of(tenant, num_gpus).contributions();
  for (Contribution& c : own) {
    c.priority = priority;
    c.ready_us = start_us;
  }
  tenants.add(tenant.name(), std::move(own));
}

void add_file(const std::string& path, const Topology& topology, Tenants& tenants) {
  const Demand demand = read_as(path, [&](const Json& json) { return demand_from_json(json, topology, 1); });
  const std::string stem = std::filesystem::path(path).stem().string();
  const std::vector<Tenant> inside = tenants_of(demand);
  for (const Tenant& tenant : inside) {
    std::vector<Contribution> own;
    std::ranges::copy_if(demand.contributions(), std::back_inserter(own),
                         [&](const Contribution& c) { return c.tenant == tenant.number; });
    tenants.add(inside.size() == 1 ? stem : fmt::format("{}-{}", stem, tenant.number), std::move(own));
  }
}

}  // namespace

Option tenant_option() {
  return {"tenant",
          "NAME:KEY=VALUE,...",
          "",
          "one of several collectives that share the fabric, in place of --collective: collective, size, "
          "group, root, priority (1), start (us, 0); repeat it",
          nullptr,
          true};
}

bool are_tenants_asked(const Settings& settings) {
  return settings.has("tenant") || settings.texts("demand").size() > 1;
}

SharedDemand read_tenants(const Settings& settings, const Topology& topology) {
  for (const char* own : {"collective", "size", "root", "group", "relay", "counts", "ready"}) {
    settings.refuse_ignored(own,
                            "every tenant says for itself what it wants, of whom and when; leave it out");
  }
  Tenants tenants;
  for (const std::string& text : settings.texts("tenant")) add_tenant(text, topology.num_gpus(), tenants);
  for (const std::string& path : settings.texts("demand")) add_file(path, topology, tenants);
  return tenants.take(topology.num_gpus());
}

std::map<int, std::string> numbers_as_names(const Demand& demand) {
  std::map<int, std::string> names;
  const std::vector<Tenant> tenants = tenants_of(demand);
  if (tenants.size() == 1) return names;
  for (const Tenant& tenant : tenants) names[tenant.number] = std::to_string(tenant.number);
  return names;
}

}  // namespace rondo::cli
