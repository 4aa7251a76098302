import java.util.HashMap;

/** Keeps blocks by key, looks others up, lets the rest be collected; prints what depends on all. */
public class Churn {
    private static long work(int part, int rounds) {
        HashMap<Integer, long[]> kept = new HashMap<>();
        int keys = rounds / 4 + 1;
        long sum = part;
        for (int i = 0; i < rounds; i++) {
            long[] block = new long[64];
            block[i % 64] = i;
            kept.put(i * 7919 % keys, block);
            long[] other = kept.get((int) (sum & 0x7fffffff) % keys);
            sum = sum * 31 + (other == null ? i : other[(i * 31) % 64]);
        }
        return sum;
    }

    public static void main(String[] arguments) throws InterruptedException {
        int threads = Integer.parseInt(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        long[] sums = new long[threads];
        Thread[] all = new Thread[threads];
        for (int t = 0; t < threads; t++) {
            int part = t;
            all[t] = new Thread(() -> sums[part] = work(part, rounds / threads));
            all[t].start();
        }
        long sum = 0;
        for (int t = 0; t < threads; t++) {
            all[t].join();
            sum = sum * 31 + sums[t];
        }
        System.out.println(sum);
    }
}
