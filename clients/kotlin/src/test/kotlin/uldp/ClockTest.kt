package uldp

import java.io.File
import kotlin.random.Random
import kotlin.test.Test
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFailsWith
import kotlin.test.assertTrue

/** Which times a ledger believes: the cases of tests/mechanisms/test_clock.py. */
internal class ClockTest {
    private val store = MemoryStore()
    private val clock = SetClock()

    /** Reports until a device that has just started refuses for want of budget, and returns how often. */
    private fun reports(off: Long = 0, skewMs: Long? = HOUR_MS): Int {
        val device = Device(tableWithBudget(4.0), ledger = Ledger(store, skewMs, clock))
        for (made in 0 until 10) {
            try {
                device.report(ONCE, clock.now() + off)
            } catch (_: BudgetExceededException) {
                return made
            }
        }
        error("a budget of 4 takes 10 reports")
    }

    @Test
    fun `times of observations buy no budget`() {
        val offs = listOf(31 * DAY_MS, 62 * DAY_MS, -31 * DAY_MS, HOUR_MS + 1, -HOUR_MS - 1, 1_000_000_000_000_000)
        for (off in offs) assertContains(assertFailsWith<ClockException> { reports(off) }.message!!, if (off > 0) "ahead of" else "behind")
        assertEquals(null, store.textAt("ledger"))
        assertEquals(4, reports())
        for (off in offs) assertFailsWith<ClockException> { reports(off) }
    }

    @Test
    fun `a time in seconds is refused, and so is that of a clock which nobody has set, or of no year`() {
        for (time in listOf(NOW / 1000, 0, -NOW, 99_999_999_999, Long.MAX_VALUE)) {
            val device = Device(tableWithBudget(4.0), ledger = Ledger(store, null, clock))
            assertContains(assertFailsWith<IllegalArgumentException> { device.report(ONCE, time) }.message!!, "milliseconds")
        }
        assertEquals(null, store.textAt("ledger"))
    }

    @Test
    fun `times within the skew are believed`() {
        assertEquals(4, reports(HOUR_MS))
        assertEquals(0, reports(-HOUR_MS))
    }

    @Test
    fun `a clock that is set ahead buys no budget`() {
        assertEquals(4, reports())
        val before = store.textAt("ledger")
        for (days in listOf(31, 62)) {
            clock.ahead = days * DAY_MS
            assertContains(assertFailsWith<ClockException> { reports() }.message!!, "come ${days * 86_400} s further than the time")
        }
        assertEquals(before, store.textAt("ledger"))
        clock.ahead = 0
        clock.passed = 30 * DAY_MS
        assertEquals(4, reports())
    }

    @Test
    fun `small jumps do not add up`() {
        assertEquals(4, reports())
        clock.ahead = HOUR_MS
        assertEquals(0, reports())
        clock.ahead = 2 * HOUR_MS
        assertFailsWith<ClockException> { reports() }
    }

    @Test
    fun `a clock that was ahead when the machine started is not the measure`() {
        clock.ahead = 62 * DAY_MS
        Device(tableWithBudget(4.0), ledger = Ledger(store, HOUR_MS, clock)).report(ONCE)
        clock.ahead = 0
        assertEquals(3, reports()) // the clock is set back, which frees nothing
        clock.ahead = 62 * DAY_MS
        assertFailsWith<ClockException> { reports() }
    }

    @Test
    fun `a restart of the machine begins anew`() {
        clock.ahead = -10 * DAY_MS
        assertEquals(4, reports())
        clock.ahead = 0
        assertFailsWith<ClockException> { reports() }
        clock.boot = "second"
        clock.booted = HOUR_MS
        clock.passed = HOUR_MS
        assertEquals(0, reports())
        clock.passed += 30 * DAY_MS
        assertEquals(4, reports())
    }

    @Test
    fun `a machine that names no runs is believed`() {
        clock.boot = null
        assertEquals(4, reports())
        clock.ahead = 31 * DAY_MS
        assertEquals(4, reports())
    }

    @Test
    fun `a caller may say how far times are off`() {
        assertEquals(4, reports(-2 * DAY_MS, 2 * DAY_MS))
        assertFailsWith<ClockException> { reports(-2 * DAY_MS - 1, 2 * DAY_MS) }
        assertEquals(4, reports(31 * DAY_MS, null))
        assertFailsWith<IllegalArgumentException> { Ledger(store, -1) }
    }

    @Test
    fun `a device with kept responses checks too`() {
        val device = Device(table("kept"), ledger = Ledger(store, HOUR_MS, clock))
        assertFailsWith<ClockException> { device.report(ONCE, NOW + DAY_MS) }
        device.report(ONCE, NOW)
    }

    @Test
    fun `a clock of 2038 in an earlier run silences a device for a period and not for years`() {
        clock.ahead = 12 * YEAR_MS
        assertEquals(4, reports())
        restart("second", 0)
        assertEquals(0, reports()) // nor does it double the budget
        val before = store.textAt("ledger")
        clock.passed = 30 * DAY_MS - 1
        assertEquals(0, reports())
        assertEquals(before, store.textAt("ledger"))
        clock.passed = 30 * DAY_MS
        assertEquals(4, reports())
        clock.passed = 12 * YEAR_MS + DAY_MS // the time has come that the clock showed
        assertEquals(0, reports())
    }

    @Test
    fun `a clock of 2010 in a later run frees nothing when it is right again`() {
        assertEquals(4, reports())
        restart("second", -16 * YEAR_MS)
        assertEquals(0, reports())
        restart("third", 0)
        clock.passed = DAY_MS
        assertEquals(0, reports())
        clock.ahead = -2 * HOUR_MS // a little back, from which 2010 must not count
        assertEquals(0, reports())
        clock.ahead = 0
        clock.passed = 30 * DAY_MS
        assertEquals(4, reports())
    }

    @Test
    fun `years that a clock jumps while a device is silent are no time that passes`() {
        clock.ahead = 12 * YEAR_MS
        assertEquals(4, reports())
        for (ahead in listOf(-3 * YEAR_MS, 0, -16 * YEAR_MS, -2 * HOUR_MS, 0)) {
            restart("second", ahead)
            clock.passed += HOUR_MS
            assertEquals(0, reports())
        }
        clock.passed = HOUR_MS + 30 * DAY_MS - 1
        assertEquals(0, reports())
        clock.passed++
        assertEquals(4, reports())
    }

    @Test
    fun `a clock that is set back twice silences a device for a period`() {
        clock.ahead = 12 * YEAR_MS
        assertEquals(4, reports())
        for ((boot, ahead) in listOf("second" to 11 * YEAR_MS, "third" to 0L)) {
            restart(boot, ahead)
            assertEquals(0, reports())
        }
        clock.passed = 30 * DAY_MS
        assertEquals(4, reports())
    }

    @Test
    fun `a device says when it can report again, also if its clock comes to the time of a wrong one before`() {
        clock.ahead = 10 * DAY_MS
        assertEquals(4, reports())
        restart("second", 0)
        val device = Device(tableWithBudget(4.0), ledger = Ledger(store, HOUR_MS, clock))
        assertEquals(NOW + 40 * DAY_MS, assertFailsWith<BudgetExceededException> { device.report(ONCE) }.until)
    }

    @Test
    fun `a spending of 2038 does not let those of a day count as one`() {
        clock.ahead = 12 * YEAR_MS
        val device = Device(tableWithBudget(4.0, 6 * HOUR_MS), ledger = Ledger(store, HOUR_MS, clock))
        device.report(ONCE)
        restart("second", 0)
        clock.passed = DAY_MS
        repeat(30) {
            clock.passed += 2 * HOUR_MS
            device.report(ONCE)
        }
    }

    @Test
    fun `a window of 2038 does not keep a device with kept responses from reporting`() {
        clock.ahead = 12 * YEAR_MS
        val device = Device(table("kept"), ledger = Ledger(store, HOUR_MS, clock))
        device.report(ONCE)
        restart("second", 0)
        device.report(ONCE)
        assertContains(assertFailsWith<IllegalStateException> { device.report(ONCE) }.message!!, "in this window, or in a later one")
    }

    private fun restart(boot: String, ahead: Long) {
        clock.boot = boot
        clock.ahead = ahead
    }

    @Test
    fun `in one run the clock never comes further than time and skew`() {
        val random = Random(5)
        repeat(200) {
            val set = SetClock()
            var known: Start? = null
            val admitted = mutableListOf<Pair<Long, Long>>()
            repeat(12) {
                set.passed += random.nextLong(10 * DAY_MS)
                set.ahead = random.nextLong(-40 * DAY_MS, 40 * DAY_MS)
                try {
                    known = checkedStart(known, set, set.now(), HOUR_MS)
                    admitted += set.passed to set.now()
                } catch (_: ClockException) {
                    // what is refused is not admitted
                }
            }
            for ((number, each) in admitted.withIndex()) {
                assertTrue(admitted.take(number).all { each.second - it.second <= each.first - it.first + HOUR_MS })
            }
        }
    }

    @Test
    fun `the clock of this machine`() {
        val system = SystemClock()
        val first = system.uptime()
        assertTrue(system.now() > NOW - 365 * DAY_MS)
        assertEquals(File("/proc/uptime").canRead(), first != null)
        if (first != null) {
            val second = checkNotNull(system.uptime())
            assertEquals(first.boot, second.boot)
            assertTrue(first.elapsed in 1..second.elapsed)
        }
    }
}
