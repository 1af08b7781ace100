ALTER TABLE "operations"."notify_deliveries" ADD COLUMN "decision" jsonb;--> statement-breakpoint
ALTER TABLE "operations"."notify_destinations" ADD COLUMN "session_id" uuid;--> statement-breakpoint
ALTER TABLE "operations"."notify_notices" ADD COLUMN "shown" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "notify_destinations_session_id_index" ON "operations"."notify_destinations" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "notify_notices_shown" ON "operations"."notify_notices" USING btree ("destination_id") WHERE shown;