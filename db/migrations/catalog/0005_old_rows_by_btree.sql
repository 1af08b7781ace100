DROP INDEX "catalog"."command_log_retain";--> statement-breakpoint
DROP INDEX "catalog"."observation_history_old";--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "command_log_retain_until" ON "catalog"."command_log" USING btree ("retain_until");--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "observation_history_observed_at" ON "catalog"."observation_history" USING btree ("observed_at");