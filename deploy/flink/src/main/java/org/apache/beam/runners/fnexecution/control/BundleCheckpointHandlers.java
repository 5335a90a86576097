package org.apache.beam.runners.fnexecution.control;

import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import org.apache.beam.model.fnexecution.v1.BeamFnApi.BundleApplication;
import org.apache.beam.model.fnexecution.v1.BeamFnApi.DelayedBundleApplication;
import org.apache.beam.model.fnexecution.v1.BeamFnApi.ProcessBundleResponse;
import org.apache.beam.runners.core.InMemoryStateInternals;
import org.apache.beam.runners.core.StateInternals;
import org.apache.beam.runners.core.StateInternalsFactory;
import org.apache.beam.runners.core.StateNamespace;
import org.apache.beam.runners.core.StateNamespaces;
import org.apache.beam.runners.core.StateTags;
import org.apache.beam.runners.core.TimerInternalsFactory;
import org.apache.beam.sdk.coders.Coder;
import org.apache.beam.sdk.coders.CoderException;
import org.apache.beam.sdk.state.TimeDomain;
import org.apache.beam.sdk.transforms.windowing.BoundedWindow;
import org.apache.beam.sdk.util.CoderUtils;
import org.apache.beam.sdk.values.WindowedValue;
import org.apache.beam.sdk.values.WindowedValues;
import org.joda.time.Duration;
import org.joda.time.Instant;

/**
 * Takes the place of the class of this name in Beam's runner for Flink, version 2.70.
 *
 * <p>A splittable DoFn gives a residual at the end of each bundle: what it has yet to read. Beam's
 * class writes each residual into a state with a new name. A state with a name is a column family
 * of RocksDB, which stays for good: four idle readers of Kafka made 649 in 220 seconds, with a
 * thousand open files. This class writes all residuals into states of one name.
 * Beam has mended its own since (issue 27648), so a newer runner does not need this one.
 *
 * <p>Flink keeps a state for each key, and the key of a splittable DoFn is its element. So an
 * element may have one residual at a time. The sources of uldp give one, since nothing splits them.
 */
public final class BundleCheckpointHandlers {
  private BundleCheckpointHandlers() {}

  /** Keeps residuals in state, each with a timer at which the runner goes on with it. */
  public static final class StateAndTimerBundleCheckpointHandler<T>
      implements BundleCheckpointHandler {
    /** How the names of states and timers of residuals begin. */
    public static final String SDF_PREFIX = "sdf_checkpoint";

    private final TimerInternalsFactory<T> timers;
    private final StateInternalsFactory<T> states;
    private final Coder<WindowedValue<T>> residualCoder;
    private final Coder<BoundedWindow> windowCoder;
    private long inMemory = 0;

    @SuppressWarnings("unchecked") // The runner passes a coder without its type.
    public StateAndTimerBundleCheckpointHandler(
        TimerInternalsFactory<T> timers,
        StateInternalsFactory<T> states,
        Coder<WindowedValue<T>> residualCoder,
        Coder windowCoder) {
      this.timers = timers;
      this.states = states;
      this.residualCoder = residualCoder;
      this.windowCoder = windowCoder;
    }

    /** Returns whether a timer is that of a residual, of this class or of Beam's. */
    public static boolean isSdfTimer(String timerId) {
      return timerId.startsWith(SDF_PREFIX);
    }

    @Override
    public void onCheckpoint(ProcessBundleResponse response) {
      Set<Object> keys = new HashSet<>();
      for (DelayedBundleApplication residual : response.getResidualRootsList()) {
        if (residual.hasApplication()) {
          keep(residual, keys);
        }
      }
    }

    private void keep(DelayedBundleApplication residual, Set<Object> keys) {
      WindowedValue<T> value = decoded(residual.getApplication());
      StateInternals state = states.stateInternalsForKey(value.getValue());
      // Bounded jobs have one key for all elements, and memory for their states, which ends with them.
      boolean bounded = state instanceof InMemoryStateInternals;
      if (!bounded && !keys.add(state.getKey())) {
        throw new IllegalStateException("an element has two residuals; one would be lost");
      }
      String name = bounded ? SDF_PREFIX + ":" + inMemory++ : SDF_PREFIX;
      // As Beam's class, which leaves out parts of a second.
      Duration delay = Duration.standardSeconds(residual.getRequestedTimeDelay().getSeconds());
      Instant due = Instant.now().plus(delay);
      Instant hold = watermark(residual.getApplication());
      for (BoundedWindow window : value.getWindows()) {
        StateNamespace namespace = StateNamespaces.window(windowCoder, window);
        timers
            .timerInternalsForKey(value.getValue())
            .setTimer(namespace, name, "", due, hold, TimeDomain.PROCESSING_TIME);
        state
            .state(namespace, StateTags.value(name, residualCoder))
            .write(
                WindowedValues.of(
                    value.getValue(),
                    value.getTimestamp(),
                    Collections.singletonList(window),
                    value.getPaneInfo()));
      }
    }

    private WindowedValue<T> decoded(BundleApplication application) {
      try {
        return CoderUtils.decodeFromByteArray(residualCoder, application.getElement().toByteArray());
      } catch (CoderException error) {
        throw new IllegalStateException("the worker gave a residual that cannot be read", error);
      }
    }

    /** Returns the time before which the residual gives nothing: the earliest of all outputs. */
    private static Instant watermark(BundleApplication application) {
      return application.getOutputWatermarksMap().values().stream()
          .map(watermark -> Instant.ofEpochSecond(watermark.getSeconds()))
          .min(Instant::compareTo)
          .orElse(BoundedWindow.TIMESTAMP_MIN_VALUE);
    }
  }
}
