CREATE INDEX IF NOT EXISTS "notify_deliveries_ended_at_index" ON "operations"."notify_deliveries" USING btree ("ended_at");--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "durations_at_index" ON "operations"."durations" USING btree ("at");--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "inbox_received_at_index" ON "operations"."inbox" USING btree ("received_at");