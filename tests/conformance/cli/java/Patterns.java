import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** For each line of standard input, a pattern in base 64: which arguments it matches, as digits, or that it is none. */
public class Patterns {
    public static void main(String[] names) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String text = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
            StringBuilder verdict = new StringBuilder();
            try {
                Pattern pattern = Pattern.compile(text);
                for (String name : names) {
                    verdict.append(pattern.matcher(name).matches() ? '1' : '0');
                }
            } catch (PatternSyntaxException e) {
                verdict.append("none");
            }
            System.out.println(verdict);
        }
    }
}
