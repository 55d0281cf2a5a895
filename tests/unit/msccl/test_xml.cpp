#include <gtest/gtest.h>

#include "by_hand.hpp"
#include "rondo/core/error.hpp"
#include "rondo/msccl/xml.hpp"

namespace rondo::msccl::test_xml {
namespace {

const char* const kFile =
    R"(<!-- any producer --><algo name="a" proto="LL128" nchannels="2" nchunksperloop="2" ngpus="2" coll="allgather"
 inplace="0" outofplace="1" minBytes="8" maxBytes="5000000000" redop="nop" nthreads="256" unknown="x">
  <gpu id="1" i_chunks="1" o_chunks="2" s_chunks="0"/>
  <gpu id="0" i_chunks="1" o_chunks="2" s_chunks="3">
    <tb id="1" send="-1" recv="1" chan="1"/>
    <tb id="0" send="1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="1" deps="0" hasdep="0"/>
      <step s="1" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="2" cnt="4" depid="-1" deps="-1" hasdep="1"/>
    </tb>
  </gpu>
</algo>)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto place = text.find(from);
  EXPECT_NE(place, std::string::npos) << from;
  return text.replace(place, from.size(), to);
}

/// The message of the error that `text` gives.
std::string refusal(const std::string& text, ExitCode code = ExitCode::bad_data,
                    const XmlLimits& limits = {}) {
  try {
    parse_xml(text, limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

TEST(MscclXml, ReadsEveryField) {
  const Program program = parse_xml(kFile);
  EXPECT_EQ(program.name, "a");
  EXPECT_EQ(program.protocol, Protocol::ll128);
  EXPECT_EQ(program.coll, Collective::allgather);
  EXPECT_EQ(program.num_channels, 2);
  EXPECT_EQ(program.chunks_per_loop, 2);
  EXPECT_FALSE(program.in_place);
  EXPECT_TRUE(program.out_of_place);
  EXPECT_EQ(program.min_bytes, 8);
  EXPECT_EQ(program.max_bytes, 5'000'000'000);
  EXPECT_EQ(program.num_threads, 256);
  ASSERT_EQ(program.num_gpus(), 2);
  const Gpu& gpu = program.gpus[0];
  EXPECT_EQ(gpu.scratch_chunks, 3);
  ASSERT_EQ(gpu.tbs.size(), 2U);
  EXPECT_EQ(gpu.tbs[0].send_peer, 1);
  EXPECT_EQ(gpu.tbs[1].recv_peer, 1);
  EXPECT_EQ(gpu.tbs[1].channel, 1);
  ASSERT_EQ(gpu.tbs[0].steps.size(), 2U);
  EXPECT_EQ(gpu.tbs[0].steps[0].dependency, (Dependency{.tb = 1, .step = 0}));
  const Step expected = {
      .type = StepType::send, .src = in(0), .dst = scratch(2), .count = 4, .has_dependents = true};
  EXPECT_EQ(gpu.tbs[0].steps[1], expected);
}

TEST(MscclXml, RoundTrips) {
  Program odd_name = ring_allgather(3);
  odd_name.name = "a<b & \"c\"";
  for (const Program& program : {parse_xml(kFile), odd_name, relayed_alltoall()}) {
    EXPECT_EQ(parse_xml(write_xml(program)), program);
  }
}

TEST(MscclXml, AcceptsBothSpellingsOfReduceScatter) {
  for (const char* spelling : {"reduce_scatter", "reducescatter"}) {
    const Program program = parse_xml(replaced(kFile, "\"allgather\"", '"' + std::string(spelling) + '"'));
    EXPECT_EQ(program.coll, *find_collective("reduce_scatter"));
    EXPECT_EQ(program.coll_spelling, spelling);
  }
}

TEST(MscclXml, NamesWhatIsWrong) {
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"<algo", "<alga", "well-formed"},
      {"</algo>", "", "well-formed"},
      {" minBytes=\"8\"", "", "no attribute minBytes; executors pass over"},
      {" outofplace=\"1\"", "", "no attribute outofplace"},
      {"outofplace=\"1\"", "outofplace=\"2\"", "outofplace is 2, but has to be 0 or 1"},
      {" proto=\"LL128\"", "", "no attribute proto"},
      {"LL128", "LL64", "proto is 'LL64'; known are: Simple, LL, LL128"},
      {"\"allgather\"", "\"gatherall\"", "coll is 'gatherall'; known are"},
      {"ngpus=\"2\"", "ngpus=\"3\"", "ngpus is 3, but there are 2"},
      {"ngpus=\"2\"", "ngpus=\"2.0\"", "ngpus is '2.0', but has to be a whole number"},
      {"ngpus=\"2\"", "ngpus=\"99999999999999\"", "has to be a whole number"},
      {"nchunksperloop=\"2\"", "nchunksperloop=\"0\"", "at least 1"},
      {"gpu id=\"1\"", "gpu id=\"0\"", "gpu id 0 stands twice"},
      {"gpu id=\"1\"", "gpu id=\"7\"", "gpu id 7, but there are 2"},
      {"tb id=\"1\"", "tb id=\"2\"", "gpu 0: tb id 2"},
      {"step s=\"1\"", "step s=\"2\"", "gpu 0 tb 0 step 1: s is 2"},
      {"type=\"s\"", "type=\"t\"", "gpu 0 tb 0 step 1: type is 't'"},
      {"srcbuf=\"i\" srcoff=\"0\"", "srcbuf=\"q\" srcoff=\"0\"", "srcbuf is 'q'; known are: i, o, s"},
      {"deps=\"0\"", "deps=\"-1\"", "gpu 0 tb 0 step 0: depid is 1 and deps is -1"},
      {"<step s=\"1\"", "<stop s=\"1\"", "gpu 0 tb 0: <stop> in <tb>"},
      {"</tb>", "text</tb>", "gpu 0 tb 0: there is text"},
  };
  for (const auto& c : cases) {
    const std::string message = refusal(replaced(kFile, c.from, c.to));
    EXPECT_NE(message.find(c.message), std::string::npos) << c.from << " -> " << c.to << ": " << message;
  }
  EXPECT_NE(refusal("").find("well-formed"), std::string::npos);
  EXPECT_NE(refusal("<gpu/>").find("not <algo>"), std::string::npos);
  EXPECT_NE(refusal(std::string(kFile) + "<algo/>").find("more than one"), std::string::npos);
}

TEST(MscclXml, KeepsToItsLimits) {
  const std::string file = kFile;
  refusal(file, ExitCode::unavailable, {.bytes = file.size() - 1});
  refusal(file, ExitCode::unavailable, {.elements = 3});
  refusal(replaced(file, "ngpus=\"2\"", "ngpus=\"2000000000\""), ExitCode::unavailable);
  std::string deep;
  for (int i = 0; i < 300'000; ++i) deep += "<algo>";
  refusal(deep);
  for (int i = 0; i < 300'000; ++i) deep += "</algo>";
  refusal(deep);
}

TEST(MscclXml, SurvivesTruncationAnywhere) {
  const std::string file = kFile;
  for (std::size_t length = 0; length + 1 < file.size(); ++length) refusal(file.substr(0, length));
}

}  // namespace
}  // namespace rondo::msccl::test_xml
